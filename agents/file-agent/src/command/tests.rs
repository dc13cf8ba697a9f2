//! Commands that end, that do not, and that print.

use std::{path::Path, time::Duration};

use rustix::process::{Pid, test_kill_process};

use crate::command::{Allowed, Command, CommandError};

fn shell(script: &str, timeout_ms: u32) -> Command {
    let allowed = Allowed::new(["/bin/sh".to_owned()]);
    let words = ["/bin/sh", "-c", script].map(str::to_owned);
    Command::new(&words, timeout_ms, &allowed).unwrap().unwrap()
}

async fn run(script: &str) -> Result<(), CommandError> {
    shell(script, 0).run(Path::new("/")).await
}

fn is_alive(pid: &str) -> bool {
    test_kill_process(Pid::from_raw(pid.trim().parse().unwrap()).unwrap()).is_ok()
}

/// Waits for the end of a process, of which nobody tells; an orphan may stay as a zombie, which has ended as well.
async fn until_dead(pid: &str) {
    let has_ended = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        !is_alive(pid) || stat.contains(") Z ")
    };
    let poll = async {
        while !has_ended() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), poll)
        .await
        .expect("the process is still there");
}

async fn until_written(path: &Path) -> String {
    let poll = async {
        loop {
            match std::fs::read_to_string(path) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), poll).await.expect("nothing was written")
}

#[tokio::test]
async fn a_command_that_fails_says_how_and_what_it_printed_in_order() {
    run("exit 0").await.unwrap();
    let error = run("echo one; echo two >&2; echo three; exit 3").await.unwrap_err();
    assert_eq!(error.to_string(), "/bin/sh ended with exit status: 3: one; two; three");
    assert!(error.is_verdict());
    let error = run("kill -9 $$").await.unwrap_err();
    assert!(error.to_string().contains("signal: 9") && !error.is_verdict(), "{error}");
}

#[tokio::test]
async fn only_the_end_of_much_output_is_kept() {
    let error = run("head -c 50000000 /dev/zero | tr '\\0' x; echo; echo 'ünd Schluss'; exit 1")
        .await
        .unwrap_err();
    let CommandError::Failed { output, .. } = &error else { panic!("{error}") };
    let text = output.to_string();
    assert!(text.starts_with("…xxx") && text.ends_with("xxx; ünd Schluss") && text.len() <= 810, "{text}");
    // Two bytes for each character: one of them is cut off with its other half.
    let error = run("printf 'é%.0s' $(seq 500); echo; exit 1").await.unwrap_err();
    assert!(error.to_string().contains(": …éé") && !error.to_string().contains('\u{fffd}'), "{error}");
}

#[tokio::test]
async fn output_cannot_break_out_of_its_line() {
    let error = run(r"printf 'a\033[31mb\n\n\nc\r\n'; exit 1").await.unwrap_err();
    assert!(error.to_string().ends_with(": a [31mb; c"), "{error}");
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_killed_with_its_children() {
    let error = shell("sleep 1000 & echo $!; sleep 1000", 300).run(Path::new("/")).await.unwrap_err();
    let CommandError::TimedOut { output, .. } = &error else { panic!("{error}") };
    assert!(!error.is_verdict());
    until_dead(&output.to_string()).await;
}

#[tokio::test]
async fn a_command_that_nobody_waits_for_any_more_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let (note, script) = (folder.path().join("pid"), "sleep 1000 & echo $! > pid; sleep 1000");
    let command = shell(script, 0);
    let running = command.run(folder.path());
    let pid = tokio::select! {
        ended = running => panic!("{ended:?}"),
        pid = until_written(&note) => pid,
    };
    until_dead(&pid).await;
}

#[tokio::test]
async fn what_a_command_leaves_running_is_neither_waited_for_nor_killed() {
    let folder = tempfile::tempdir().unwrap();
    shell("sleep 1000 & echo $! > pid", 0).run(folder.path()).await.unwrap();
    let pid = until_written(&folder.path().join("pid")).await;
    assert!(is_alive(&pid));
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_command_has_no_input_and_nothing_of_the_environment_of_the_agent() {
    let error = run("cat; env | sort | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD=; exit 1")
        .await
        .unwrap_err();
    let words = "LC_ALL=C.UTF-8; PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    assert!(error.to_string().ends_with(&format!("exit status: 1: {words}")), "{error}");
}

#[tokio::test]
async fn arguments_are_not_read_by_a_shell_and_the_path_goes_where_the_braces_are() {
    let allowed = Allowed::new(["/usr/bin/printf".to_owned()]);
    let words = ["/usr/bin/printf", "%s|", "$HOME", "a;b", "--file={}"].map(str::to_owned);
    let command = Command::new(&words, 0, &allowed).unwrap().unwrap();
    assert!(command.has_placeholder());
    let command = command.about(Path::new("/etc/x y"));
    assert_eq!(command.arguments, ["%s|", "$HOME", "a;b", "--file=/etc/x y"]);
    command.run(Path::new("/")).await.unwrap();
}

#[tokio::test]
async fn a_program_that_is_not_there_may_be_there_later() {
    let allowed = Allowed::new(["/nowhere/at-all".to_owned()]);
    let command = Command::new(&["/nowhere/at-all".to_owned()], 0, &allowed).unwrap().unwrap();
    let error = command.run(Path::new("/")).await.unwrap_err();
    assert!(error.to_string().contains("/nowhere/at-all cannot be started") && !error.is_verdict(), "{error}");
}

#[test]
fn a_program_is_allowed_by_exactly_its_path() {
    fn check(program: &str, is_allowed: bool) {
        let allowed = Allowed::new(["/usr/sbin/nginx".to_owned()]);
        match Command::new(&[program.to_owned()], 0, &allowed) {
            Ok(command) => assert!(is_allowed && command.is_some(), "{program}"),
            Err(failure) => {
                assert!(!is_allowed && failure.is_permanent() && failure.code() == "NOT_ALLOWED", "{failure:?}");
                assert!(failure.message().contains(&format!("--allow {program}")), "{failure:?}");
            }
        }
    }

    check("/usr/sbin/nginx", true);
    check("nginx", false);
    check("/usr/sbin/../sbin/nginx", false);
    check("/usr/sbin//nginx", false);
    check("/bin/sh", false);
    assert_eq!(Command::new(&[], 0, &Allowed::default()).unwrap(), None);
}

#[test]
fn commands_that_make_no_sense_are_refused_for_good() {
    let allowed = Allowed::new(["/bin/sh".to_owned()]);
    for (words, timeout_ms) in [(["/bin/sh", "a\0b"], 0), (["/bin/sh", "x"], 600_001)] {
        let failure = Command::new(&words.map(str::to_owned), timeout_ms, &allowed).unwrap_err();
        assert!(failure.is_permanent() && failure.code() == "INVALID", "{failure:?}");
    }
}
