//! Processes and their streams: readers that go away, children of children, servers that say odd things.

use super::{Folder, command, echo, number, serve};
use std::io;
use std::process::Stdio;

/// A pipe that nobody reads.
fn unread() -> Stdio {
    io::pipe().expect("a pipe").1.into()
}

#[test]
fn a_reader_that_goes_away_costs_no_figures() {
    let folder = Folder::new("unread");
    let address = serve(|stream| echo(stream, |_| {})).to_string();
    for both in [false, true] {
        let log = folder.path.join(format!("{both}.hlog"));
        let mut load = command(&folder, &["--address", &address, "--no-cross-check"]);
        load.arg("--log").arg(&log).stdout(unread());
        if both {
            load.stderr(unread());
        }
        let output = load.output().expect("load can be started");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(number(&folder.figures(), "/servers/0/replies") > 0, "{output:?}");
        assert!(folder.page().ends_with("</html>\n") && log.exists(), "{output:?}");
    }
}
