//! Who plays: a bus, a controller, agents, and an operator who asks.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::net::TcpListener;

use crate::demo::{bus::BusProcess, fleet::Fleet, folder::Folder, hints::Hints, operator::Operator, running::Running};

/// Who plays. All of them end with this value.
#[derive(Debug)]
pub(crate) struct Cast {
    pub(crate) operator: Operator,
    pub(crate) hints: Hints,
    pub(crate) fleet: Fleet,
    bus: Option<BusProcess>,
    controller: Option<Running>,
    listen: SocketAddr,
    store: PathBuf,
    /// Removed when everybody has gone.
    folder: Folder,
}

/// The whole demo is to end within two seconds.
const AGENTS_END: Duration = Duration::from_millis(700);
const CONTROLLER_ENDS: Duration = Duration::from_millis(1_000);
const BUS_ENDS: Duration = Duration::from_millis(600);

// === impl Cast ===

impl Cast {
    /// Finds a place for everything; nobody is there yet.
    pub(crate) async fn new(listen: SocketAddr, store: Option<PathBuf>, keep: bool) -> Result<Self, String> {
        if let Some(store) = store.as_deref().filter(|store| store.exists()) {
            let hint = "the demo begins with an empty store: name a file that is not there yet";
            return Err(format!("{} exists already (hint: {hint})", store.display()));
        }
        let listen = free_address(listen).await?;
        let reachable = BusProcess::reachable(listen);
        let folder = Folder::make(keep)?;
        let store = store.unwrap_or_else(|| folder.path().join("store.redb"));
        Ok(Self {
            operator: Operator::at(&format!("http://{reachable}"))?,
            hints: Hints::new(reachable),
            fleet: Fleet::default(),
            bus: None,
            controller: None,
            listen,
            store,
            folder,
        })
    }

    /// Where the bus listens, as agents are told.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", BusProcess::reachable(self.listen))
    }

    /// Where the objects are kept.
    pub(crate) fn store(&self) -> &Path {
        &self.store
    }

    /// Where its files stay, if they do.
    pub(crate) fn kept(&self) -> Option<&Path> {
        self.folder.is_kept().then(|| self.folder.path())
    }

    /// Starts the bus, and gives the number of its process.
    pub(crate) async fn start_bus(&mut self) -> Result<u32, String> {
        let bus = BusProcess::start(self.listen, &self.store, &self.folder.path().join("bus.log")).await?;
        Ok(self.bus.insert(bus).id())
    }

    /// Kills the bus, and gives the number that its process had.
    pub(crate) async fn kill_bus(&mut self) -> Result<u32, String> {
        let bus = self.bus.take().ok_or("there is no bus")?;
        let id = bus.id();
        bus.kill().await.map(|()| id)
    }

    /// Starts the controller.
    pub(crate) async fn start_controller(&mut self) -> Result<(), String> {
        self.controller = Some(Running::start(&self.url()).await?);
        Ok(())
    }

    /// Stops the controller.
    pub(crate) async fn stop_controller(&mut self) -> Result<(), String> {
        let controller = self.controller.take().ok_or("there is no controller")?;
        let ended = controller.stop(CONTROLLER_ENDS).await;
        if ended { Ok(()) } else { Err("the controller did not end by itself".to_owned()) }
    }

    /// The controller that runs.
    pub(crate) fn controller(&self) -> Result<&Running, String> {
        self.controller.as_ref().ok_or_else(|| "there is no controller".to_owned())
    }

    /// Sends everybody away: those first who would miss the others.
    pub(crate) async fn close(mut self) {
        let controller = self.controller.take();
        let controllers = async {
            if let Some(controller) = controller {
                controller.stop(CONTROLLER_ENDS).await;
            }
        };
        tokio::join!(self.fleet.stop(AGENTS_END), controllers);
        if let Some(bus) = self.bus.take() {
            bus.stop(BUS_ENDS).await;
        }
    }
}

/// An address that nobody listens on, with a port if none was given.
async fn free_address(listen: SocketAddr) -> Result<SocketAddr, String> {
    let hint = format!(
        "is a bus running there? Stop it, or listen elsewhere: nimbus demo --listen {}",
        SocketAddr::new(listen.ip(), 0)
    );
    let listener = TcpListener::bind(listen).await;
    let address = listener.and_then(|listener| listener.local_addr());
    address.map_err(|error| format!("cannot listen on {listen}: {error} (hint: {hint})"))
}
