//! Commands that come with a file, as far as the operator allows them.

use std::{
    collections::BTreeSet,
    io,
    os::fd::OwnedFd,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use nimbus_agent::Failure;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    net::unix::pipe::Receiver,
    process::{Child, Command as Process},
};

use crate::{refusal, tail::Tail};

/// The programs that may be run: absolute paths, compared as they are written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowed(BTreeSet<String>);

/// A program that may be run, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    program: String,
    arguments: Vec<String>,
    timeout: Duration,
}

/// How a command went wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("{program} cannot be started: {source}")]
    Start { program: String, source: io::Error },
    #[error("{program} took longer than {timeout:?} and was killed: {output}")]
    TimedOut { program: String, timeout: Duration, output: Tail },
    #[error("{program} ended with {status}: {output}")]
    Failed { program: String, status: ExitStatus, output: Tail },
}

/// A process and all that it has started, killed when this value goes away unless it has ended by itself.
struct Group {
    child: Child,
    /// None when it has ended: the number may then be somebody else's.
    leader: Option<Pid>,
}

/// Where the path of the staged file goes.
pub(crate) const PLACEHOLDER: &str = "{}";

/// Long enough for a check or a reload that has to wait for a disk.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// A command that takes longer is not a check or a reload, and holds back the next version of its file.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// What a command may rely on. The agent's own environment is nobody's business.
const ENVIRONMENT: [(&str, &str); 2] =
    [("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), ("LC_ALL", "C.UTF-8")];

/// What is read at once.
const CHUNK: usize = 8 << 10;

/// A pipe holds this much at most; more than that was written by somebody who outlives the command.
const MAX_REST: usize = 1 << 20;

// === impl Allowed ===

impl Allowed {
    /// These programs and no others.
    pub(crate) fn new(programs: impl IntoIterator<Item = String>) -> Self {
        Self(programs.into_iter().collect())
    }
}

// === impl Command ===

impl Command {
    /// Takes a command as it stands in an object; an empty list is none.
    pub(crate) fn new(words: &[String], timeout_ms: u32, allowed: &Allowed) -> Result<Option<Self>, Failure> {
        let Some((program, arguments)) = words.split_first() else { return Ok(None) };
        if words.iter().any(|word| word.contains('\0')) {
            return Err(refusal::invalid("a command has a NUL in it"));
        }
        if !allowed.0.contains(program) {
            return Err(refusal::not_allowed(program));
        }
        let timeout = match Duration::from_millis(timeout_ms.into()) {
            Duration::ZERO => DEFAULT_TIMEOUT,
            timeout if timeout <= MAX_TIMEOUT => timeout,
            timeout => return Err(refusal::invalid(format!("{timeout:?} for a command: at most {MAX_TIMEOUT:?}"))),
        };
        Ok(Some(Self { program: program.clone(), arguments: arguments.to_vec(), timeout }))
    }

    /// Whether it says where the path goes.
    pub(crate) fn has_placeholder(&self) -> bool {
        self.arguments.iter().any(|argument| argument.contains(PLACEHOLDER))
    }

    /// The same for a certain file.
    #[must_use]
    pub(crate) fn about(&self, file: &Path) -> Self {
        let file = file.to_string_lossy();
        let arguments = self.arguments.iter().map(|argument| argument.replace(PLACEHOLDER, &file)).collect();
        Self { arguments, ..self.clone() }
    }

    /// Runs it without a shell, in a process group of its own.
    ///
    /// # Cancel safety
    /// If the future is dropped, the command and all that it has started are killed.
    pub(crate) async fn run(&self, directory: &Path) -> Result<(), CommandError> {
        let program = self.program.clone();
        let (mut group, output) = match self.start(directory) {
            Ok(started) => started,
            Err(source) => return Err(CommandError::Start { program, source }),
        };
        let mut tail = Tail::default();
        let ended = tokio::time::timeout(self.timeout, group.wait(&output, &mut tail)).await;
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(CommandError::Failed { program, status, output: tail }),
            Ok(Err(source)) => Err(CommandError::Start { program, source }),
            Err(_) => {
                group.kill();
                Err(CommandError::TimedOut { program, timeout: self.timeout, output: tail })
            }
        }
    }

    /// Both outputs go into one pipe, so that they stay in order.
    fn start(&self, directory: &Path) -> io::Result<(Group, Receiver)> {
        let (output, input) = io::pipe()?;
        let output = Receiver::from_owned_fd(OwnedFd::from(output))?;
        let mut process = Process::new(&self.program);
        process
            .args(&self.arguments)
            .env_clear()
            .envs(ENVIRONMENT)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(input.try_clone()?)
            .stderr(input)
            .process_group(0);
        let child = process.spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok((Group { child, leader }, output))
    }
}

// === impl CommandError ===

impl CommandError {
    /// Whether the command itself has said no, rather than not come to an end.
    pub(crate) fn is_verdict(&self) -> bool {
        matches!(self, Self::Failed { status, .. } if status.code().is_some())
    }
}

// === impl Group ===

impl Group {
    /// Reads until the command has ended. What it left running may hold the pipe open, and is not waited for.
    async fn wait(&mut self, output: &Receiver, tail: &mut Tail) -> io::Result<ExitStatus> {
        let mut is_open = true;
        let status = loop {
            tokio::select! {
                status = self.child.wait() => break status?,
                ready = output.readable(), if is_open => {
                    ready?;
                    is_open = read_some(output, tail)? != Read::End;
                }
            }
        };
        self.leader = None;
        let mut rest = 0;
        while rest < MAX_REST
            && let Read::Some(read) = read_some(output, tail)?
        {
            rest += read;
        }
        Ok(status)
    }

    fn kill(&mut self) {
        if let Some(leader) = self.leader.take() {
            // It fails only if all of them have ended.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The runtime collects the exit status.
        self.kill();
    }
}

#[derive(PartialEq, Eq)]
enum Read {
    Some(usize),
    Nothing,
    End,
}

fn read_some(output: &Receiver, tail: &mut Tail) -> io::Result<Read> {
    let mut buffer = [0; CHUNK];
    match output.try_read(&mut buffer) {
        Ok(0) => Ok(Read::End),
        Ok(read) => {
            tail.push(&buffer[..read]);
            Ok(Read::Some(read))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Read::Nothing),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
