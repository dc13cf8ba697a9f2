//! A real nginx whose configuration comes over the bus.

use std::{
    env, fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use nimbus_wire::v1;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::file_agent::{AGENT, File, World, ask};

/// An nginx in the foreground, which ends with this value.
struct Nginx(Child);

/// The program, as `tests/run` unpacks it.
fn program() -> String {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cache/nginx/usr/sbin/nginx");
    let program = env::var_os("NIMBUS_NGINX").map_or(unpacked, PathBuf::from);
    assert!(program.exists(), "{} is missing (hint: tests/run --install)", program.display());
    program.display().to_string()
}

/// A configuration under which every page says the same.
fn configuration(address: SocketAddr, page: &str) -> String {
    let temporary =
        ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|what| format!("{what}_temp_path {what};\n"));
    format!(
        "daemon off;\npid nginx.pid;\nerror_log stderr error;\nevents {{}}\nhttp {{\naccess_log off;\n{}\
         server {{\nlisten {address};\nlocation / {{ return 200 \"{page}\"; }}\n}}\n}}\n",
        temporary.concat()
    )
}

/// What nginx serves, if it does.
async fn page(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

async fn serves(address: SocketAddr, expected: &str) {
    let what = format!("the page {expected:?}");
    ask(&what, async || page(address).await.filter(|found| found == expected)).await;
}

/// A configuration that is checked by nginx before it is put in place, and taken over from whoever made the first one.
fn file(nginx: &str, prefix: &str, text: &str) -> File {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    File {
        path: "nginx.conf".to_owned(),
        text: text.to_owned(),
        validate: words(&[nginx, "-t", "-p", prefix, "-c", "{}"]),
        reload: words(&[nginx, "-s", "reload", "-p", prefix, "-c", "etc/nginx.conf"]),
        adopt: true,
    }
}

// === impl Nginx ===

impl Nginx {
    fn start(nginx: &str, prefix: &str) -> Self {
        let mut command = Command::new(nginx);
        command.args(["-p", prefix, "-c", "etc/nginx.conf"]).stdin(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It is asked to stop rather than killed, or its workers would live on.
        drop(Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status());
        drop(self.0.wait());
    }
}

#[tokio::test]
async fn a_configuration_that_nginx_refuses_is_explained_in_its_own_words_and_the_old_one_goes_on_serving() {
    let nginx = program();
    let mut world = World::new(&["--allow", &nginx]).await;
    let (prefix, path) = (world.folder.path().canonicalize().unwrap(), world.root().join("nginx.conf"));
    let prefix = prefix.to_str().unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    fs::write(&path, configuration(address, "by hand")).unwrap();
    let _running = Nginx::start(&nginx, prefix);
    serves(address, "by hand").await;

    let first = configuration(address, "from the bus");
    world.publish(&[("nginx", file(&nginx, prefix, &first))]).await;
    serves(address, "from the bus").await;
    world.explain("nginx", v1::Verdict::Applied).await;

    let bad = first.replace("listen", "lisen");
    world.publish(&[("nginx", file(&nginx, prefix, &bad))]).await;
    let explained = world.explain("nginx", v1::Verdict::Failed).await;
    let exception = explained.exception.unwrap();
    let words = format!("unknown directive \"lisen\" in {prefix}/etc/.nginx.conf.nimbus-new:13");
    assert!(exception.message.contains(&words), "{exception:?}");
    assert_eq!((exception.code.as_str(), exception.retryable, exception.generation), ("VALIDATION", false, 2));
    let propagation = world.propagation("nginx").await;
    assert_eq!((propagation.agents, propagation.failed, propagation.failed_for_good), (1, 1, 1), "{propagation:?}");
    let failure = &propagation.failures[0];
    assert!(failure.agent == AGENT && failure.exception.as_ref().unwrap().message.contains(&words), "{failure:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), first);
    assert_eq!(fs::read_dir(world.root()).unwrap().count(), 1, "something was left behind");
    serves(address, "from the bus").await;

    let good = configuration(address, "good again");
    world.publish(&[("nginx", file(&nginx, prefix, &good))]).await;
    serves(address, "good again").await;
    world.explain("nginx", v1::Verdict::Applied).await;
    assert_eq!(world.propagation("nginx").await.applied, 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), good);
}
