//! Frames, one by one.

use tokio::time::Instant;

use crate::{
    core::{Core, Opening, Receive, Turn, blocks::unpadded, closing::FAREWELL},
    frame::{self, FRAME_BYTES, Head, MAX_FRAME_BYTES, MAX_WINDOW, flag, kind, setting},
    output::Output,
    reason::{Fatal, Reason},
    stream::widened,
};

// === impl Core ===

impl Core {
    pub(crate) fn frame(&mut self, head: Head, payload: &[u8], turn: &mut Turn<'_, impl Receive>) -> Result<(), Fatal> {
        if let Some(block) = &self.block
            && (head.kind, head.stream) != (kind::CONTINUATION, block.stream)
        {
            return Err(Reason::PROTOCOL_ERROR.fatal("a frame in the middle of headers"));
        }
        if self.opening == Opening::Settings {
            if head.kind != kind::SETTINGS || head.has(flag::ACK) {
                return Err(Reason::PROTOCOL_ERROR.fatal("the first frame has no settings"));
            }
            self.opening = Opening::Open;
        }
        match head.kind {
            kind::DATA => self.on_data(head, payload, turn),
            kind::HEADERS => self.on_headers(head, payload, turn),
            kind::PRIORITY => self.on_priority(head, turn),
            kind::RST_STREAM => self.on_reset(head, payload, turn),
            kind::SETTINGS => self.on_settings(head, payload, turn),
            kind::PUSH_PROMISE => Err(Reason::PROTOCOL_ERROR.fatal("clients promise nothing")),
            kind::PING => self.on_ping(head, payload, turn.now, turn.out),
            kind::GOAWAY => self.on_goaway(head, payload),
            kind::WINDOW_UPDATE => self.on_window(head, payload, turn),
            kind::CONTINUATION => self.on_continuation(head, payload, turn),
            _ => self.chat(turn.now),
        }
    }

    fn on_data(&mut self, head: Head, payload: &[u8], turn: &mut Turn<'_, impl Receive>) -> Result<(), Fatal> {
        let Head { stream, length, .. } = head;
        if self.is_idle(stream) {
            return Err(Reason::PROTOCOL_ERROR.fatal("data on a stream that was not opened"));
        }
        let bytes = u32::try_from(length).expect("frames are short");
        if !self.credit.spend(bytes) {
            return Err(Reason::FLOW_CONTROL_ERROR.fatal("more data than the connection has room for"));
        }
        let data = unpadded(head, payload)?;
        let ends = head.has(flag::END_STREAM);
        let Some(state) = self.streams.get_mut(stream) else {
            self.give_back(stream, bytes, turn.out);
            return if self.is_ignored(stream) {
                self.chat(turn.now)
            } else {
                Err(Reason::STREAM_CLOSED.fatal("data on a stream that has ended"))
            };
        };
        let wrong = match () {
            () if state.is_whole => Some(Reason::STREAM_CLOSED),
            () if !state.credit.spend(bytes) => Some(Reason::FLOW_CONTROL_ERROR),
            () if !state.take(data.len()) || (ends && !state.end()) => Some(Reason::PROTOCOL_ERROR),
            () => None,
        };
        if let Some(reason) = wrong {
            self.give_back(stream, bytes, turn.out);
            return self.refuse(stream, reason, turn);
        }
        let padding = bytes - u32::try_from(data.len()).expect("it is part of a frame");
        self.give_back(stream, padding, turn.out);
        if data.is_empty() {
            if !ends {
                self.chat(turn.now)?;
            }
        } else if !turn.to.data(stream, data) {
            // Only for the others: on this stream there is room for what was said to be, and no more.
            self.give_back(0, bytes - padding, turn.out);
        }
        if ends {
            turn.to.end(stream, None);
        }
        Ok(())
    }

    fn on_priority(&mut self, head: Head, turn: &mut Turn<'_, impl Receive>) -> Result<(), Fatal> {
        if head.stream == 0 {
            return Err(Reason::PROTOCOL_ERROR.fatal("a priority belongs to a stream"));
        }
        if head.length == 5 {
            return self.chat(turn.now);
        }
        if self.streams.get(head.stream).is_some() {
            return self.refuse(head.stream, Reason::FRAME_SIZE_ERROR, turn);
        }
        Err(wrong_size("a priority has five bytes"))
    }

    fn on_reset(&mut self, head: Head, payload: &[u8], turn: &mut Turn<'_, impl Receive>) -> Result<(), Fatal> {
        let reason: [u8; 4] = payload.try_into().map_err(|_| wrong_size("a reset has four bytes"))?;
        let stream = head.stream;
        if self.streams.get(stream).is_some() {
            let unread = turn.to.reset(stream, Reason(u32::from_be_bytes(reason)));
            self.give_back(stream, unread, turn.out);
            self.streams.remove(stream);
            self.remember(stream);
            return self.fail_once(turn.now);
        }
        if self.is_idle(stream) {
            return Err(Reason::PROTOCOL_ERROR.fatal("a reset of a stream that was not opened"));
        }
        self.chat(turn.now)
    }

    fn on_settings(&mut self, head: Head, payload: &[u8], turn: &mut Turn<'_, impl Receive>) -> Result<(), Fatal> {
        if head.stream != 0 {
            return Err(Reason::PROTOCOL_ERROR.fatal("settings belong to no stream"));
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() || (head.has(flag::ACK) && !payload.is_empty()) {
            return Err(wrong_size("settings have six bytes each"));
        }
        self.chat(turn.now)?;
        if head.has(flag::ACK) {
            return Ok(());
        }
        let before = self.peer.window;
        for [high, low, value @ ..] in settings {
            self.set(u16::from_be_bytes([*high, *low]), u32::from_be_bytes(*value))?;
        }
        // Only once, however often it is said.
        let more = self.peer.window - before;
        for stream in self.streams.values_mut() {
            let widened = stream.widen(more);
            widened.ok_or(Reason::FLOW_CONTROL_ERROR.fatal("settings make the window of a stream too large"))?;
        }
        frame::write(turn.out, kind::SETTINGS, flag::ACK, 0, &[]);
        if more > 0 {
            turn.to.room(None);
        }
        Ok(())
    }

    fn set(&mut self, name: u16, value: u32) -> Result<(), Fatal> {
        match name {
            setting::ENABLE_PUSH if value > 1 => Err(Reason::PROTOCOL_ERROR.fatal("ENABLE_PUSH is 0 or 1")),
            setting::INITIAL_WINDOW_SIZE => {
                let window = i32::try_from(value).ok();
                self.peer.window =
                    window.ok_or(Reason::FLOW_CONTROL_ERROR.fatal("INITIAL_WINDOW_SIZE is too large"))?;
                Ok(())
            }
            setting::MAX_FRAME_SIZE => {
                if !(FRAME_BYTES..=MAX_FRAME_BYTES).contains(&(value as usize)) {
                    return Err(Reason::PROTOCOL_ERROR.fatal("MAX_FRAME_SIZE is out of bounds"));
                }
                self.peer.frame_bytes = value as usize;
                Ok(())
            }
            // We keep no table, open no streams, and answer with few headers.
            _ => Ok(()),
        }
    }

    fn on_ping(&mut self, head: Head, payload: &[u8], now: Instant, out: &mut Output) -> Result<(), Fatal> {
        if head.stream != 0 {
            return Err(Reason::PROTOCOL_ERROR.fatal("a ping belongs to no stream"));
        }
        if payload.len() != 8 {
            return Err(wrong_size("a ping has eight bytes"));
        }
        self.chat(now)?;
        if !head.has(flag::ACK) {
            frame::write(out, kind::PING, flag::ACK, 0, payload);
        } else if payload == FAREWELL {
            self.finish_drain(out);
        }
        Ok(())
    }

    fn on_goaway(&mut self, head: Head, payload: &[u8]) -> Result<(), Fatal> {
        if head.stream != 0 {
            return Err(Reason::PROTOCOL_ERROR.fatal("a farewell belongs to no stream"));
        }
        if payload.len() < 8 {
            return Err(wrong_size("a farewell has at least eight bytes"));
        }
        self.is_leaving = true;
        Ok(())
    }

    fn on_window(&mut self, head: Head, payload: &[u8], turn: &mut Turn<'_, impl Receive>) -> Result<(), Fatal> {
        let more: [u8; 4] = payload.try_into().map_err(|_| wrong_size("a window update has four bytes"))?;
        let more = i32::from_be_bytes(more) & MAX_WINDOW;
        let stream = head.stream;
        if stream == 0 {
            if more == 0 {
                return Err(Reason::PROTOCOL_ERROR.fatal("a window update of nothing"));
            }
            let window = widened(self.window, more);
            self.window = window.ok_or(Reason::FLOW_CONTROL_ERROR.fatal("the window is too large"))?;
            return Ok(());
        }
        if let Some(state) = self.streams.get_mut(stream) {
            return match () {
                () if more == 0 => self.refuse(stream, Reason::PROTOCOL_ERROR, turn),
                () if state.widen(more).is_none() => self.refuse(stream, Reason::FLOW_CONTROL_ERROR, turn),
                () => {
                    turn.to.room(Some(stream));
                    Ok(())
                }
            };
        }
        if self.is_idle(stream) {
            return Err(Reason::PROTOCOL_ERROR.fatal("a window update of a stream that was not opened"));
        }
        Ok(())
    }

    /// Something that leads nowhere was said.
    fn chat(&mut self, now: Instant) -> Result<(), Fatal> {
        if self.chatter.take(now) {
            return Ok(());
        }
        Err(Reason::ENHANCE_YOUR_CALM.fatal("too many frames that lead nowhere"))
    }
}

fn wrong_size(text: &'static str) -> Fatal {
    Reason::FRAME_SIZE_ERROR.fatal(text)
}
