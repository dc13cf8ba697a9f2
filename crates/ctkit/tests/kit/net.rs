//! A network of memory, and a bus on it that can be killed and begins again without a memory.

use std::{io, pin::Pin, sync::Arc};

use ctkit::{Connector, Io, Remote, Store};
use nimbus_bus::{Bus, Config, Metrics};
use nimbus_core::Epoch;
use parking_lot::Mutex;
use tokio::{io::DuplexStream, sync::mpsc, task::JoinHandle};
use tokio_stream::wrappers::ReceiverStream;

/// A network of memory. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Net(Arc<NetState>);

#[derive(Default)]
struct NetState {
    listener: Mutex<Option<mpsc::Sender<io::Result<DuplexStream>>>>,
    pipes: Mutex<Vec<JoinHandle<()>>>,
}

/// A bus on a network.
pub(crate) struct Daemon {
    pub(crate) net: Net,
    pub(crate) store: Store,
    epoch: Epoch,
    config: fn(&mut Config),
    serving: Option<JoinHandle<()>>,
}

// === impl Net ===

impl Net {
    /// Cuts every connection.
    pub(crate) fn cut(&self) {
        self.0.pipes.lock().drain(..).for_each(|pipe| pipe.abort());
    }

    async fn dial(&self) -> io::Result<DuplexStream> {
        let refused = |why: &'static str| io::Error::new(io::ErrorKind::ConnectionRefused, why);
        let listener = self.0.listener.lock().clone();
        let listener = listener.ok_or_else(|| refused("nobody listens"))?;
        let (near, mut near_end) = tokio::io::duplex(64 << 10);
        let (far, mut far_end) = tokio::io::duplex(64 << 10);
        let pipe = tokio::spawn(async move {
            // It ends with either end.
            drop(tokio::io::copy_bidirectional(&mut near_end, &mut far_end).await);
        });
        self.0.pipes.lock().push(pipe);
        listener.send(Ok(far)).await.map_err(|_| refused("the bus is gone"))?;
        Ok(near)
    }
}

impl Connector for Net {
    fn connect(&self, _host: &str, _port: u16) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send>> {
        let net = self.clone();
        Box::pin(async move { Ok(Box::new(net.dial().await?) as Box<dyn Io>) })
    }
}

// === impl Daemon ===

impl Daemon {
    pub(crate) fn start(config: fn(&mut Config)) -> Self {
        let bus = Bus::new(Config::new(Epoch(0), 0), Metrics::default());
        let mut daemon =
            Self { net: Net::default(), store: Store::from_bus(bus), epoch: Epoch(0), config, serving: None };
        daemon.begin();
        daemon
    }

    /// Kills it: connections break, and everything in it is forgotten.
    pub(crate) fn kill(&mut self) {
        *self.net.0.listener.lock() = None;
        self.net.cut();
        if let Some(serving) = self.serving.take() {
            serving.abort();
        }
    }

    /// Starts another one, which knows nothing.
    pub(crate) fn begin(&mut self) {
        self.epoch = Epoch(self.epoch.0 + 1);
        let mut config = Config::new(self.epoch, self.epoch.0);
        (self.config)(&mut config);
        let bus = Bus::new(config, Metrics::default());
        self.store = Store::from_bus(bus.clone());
        // Whoever connects waits until the bus has taken those before.
        let (connections, incoming) = mpsc::channel(64);
        *self.net.0.listener.lock() = Some(connections);
        let serving = async move { bus.serve(ReceiverStream::new(incoming), std::future::pending()).await.unwrap() };
        self.serving = Some(tokio::spawn(serving));
    }

    /// The same, seen over the network.
    pub(crate) fn remote(&self) -> Remote {
        Remote::builder("http://bus:7400").connector(self.net.clone()).seed(7).build().unwrap()
    }
}
