//! Tests of `options`.

use super::*;
use clap::CommandFactory;

#[test]
fn the_command_line_is_sound() {
    CommandLine::command().debug_assert();
}

#[test]
fn times_have_units() {
    assert_eq!(time("5"), Ok(Duration::from_secs(5)));
    assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
    assert_eq!(time("0.5m"), Ok(Duration::from_secs(30)));
    assert_eq!(time_or_none("0"), Ok(Duration::ZERO));
    for wrong in ["0", "-1s", "x", "", "5 parsecs", "2000h", "inf", "NaN"] {
        assert!(time(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn servers_have_names() {
    let named = |name: &str, place: &str| Ok(Address { name: name.into(), place: place.into() });
    assert_eq!(address("localhost:80"), named("localhost:80", "localhost:80"));
    assert_eq!(address("nginx=[::1]:80"), named("nginx", "[::1]:80"));
    for wrong in ["", "localhost", ":80", "a=b", "=a:1", "a:99999", "http://a:80"] {
        assert!(address(wrong).is_err(), "{wrong}");
    }
    assert_eq!(command("a=./b --c=d"), Ok(Command { name: "a".into(), line: "./b --c=d".into() }));
    for wrong in ["", "a", "a=", "=b", "./b --c=d"] {
        assert!(command(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_does_not_go_together_is_named() {
    let known =
        |name, protocol| Server { name, about: "", protocol, main: || std::process::ExitCode::SUCCESS };
    let known = [known("somebody", Protocol::Tcp), known("website", Protocol::Http)];
    for (line, word) in [
        ("--server nobody", "somebody"),
        ("--server website --protocol tcp", "speaks http"),
        ("--server somebody --server website", "speaks http"),
        ("--size 16M --connections 1000", "1 GiB"),
        ("--protocol udp --size 4", "datagram"),
        ("--protocol udp --size 64,64k", "datagram"),
        ("--protocol udp --churn", "--churn"),
        ("--core 9999", "9999"),
    ] {
        let options = Options::parse_from(["load"].into_iter().chain(line.split(' ')));
        assert!(options.check(&known).is_err_and(|why| why.contains(word)), "{line}");
    }
    assert!(Options::try_parse_from(["load", "--churn", "--pipeline", "2"]).is_err());
}

#[test]
fn a_named_server_tells_the_protocol() {
    let known = [Server {
        name: "website",
        about: "",
        protocol: Protocol::Http,
        main: || std::process::ExitCode::SUCCESS,
    }];
    let options = Options::parse_from(["load", "--server", "website"]);
    assert_eq!(options.protocol(&known), Protocol::Http);
    assert_eq!(options.check(&known), Ok(()));
    assert_eq!(Options::parse_from(["load"]).protocol(&known), Protocol::Tcp);
}
