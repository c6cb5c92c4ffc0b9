//! The example raft under partitions, loss and crashes: the simulation finds the flaw that it may have.

#[expect(dead_code, reason = "its `main` runs it without a simulation")]
#[path = "../../examples/raft.rs"]
mod raft;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fibra::sync::OnceCell;
use fibra_sim::{Failure, Host, Sim, host, net, random_below};
use raft::{Disk, Entry, Event, Flaw, Node};

const NODES: [&str; 3] = ["a", "b", "c"];
const PORT: u16 = 70;
/// How often something breaks or is mended.
const FAULTS: u32 = 40;
/// How many commands the client proposes meanwhile, and then in peace.
const COMMANDS: Range<u64> = 1..20;
const LAST_COMMAND: u64 = 1000;

/// What all nodes together must keep to.
#[derive(Default)]
struct Promises {
    leaders: BTreeMap<u64, u64>,
    committed: BTreeMap<usize, Entry>,
}

impl Promises {
    fn check(&mut self, node: u64, event: Event) {
        match event {
            Event::Leads { term } => {
                let leader = *self.leaders.entry(term).or_insert(node);
                assert_eq!(leader, node, "two leaders in term {term}");
            }
            Event::Commits { index, entry } => {
                let before = *self.committed.entry(index).or_insert(entry);
                assert_eq!(before, entry, "two entries are committed at {index}");
            }
        }
    }
}

/// Runs three nodes and a client, while the network and the nodes break.
fn cluster(flaw: Flaw) {
    let promises = Arc::new(Mutex::new(Promises::default()));
    let addresses: Arc<OnceCell<Vec<SocketAddr>>> = Arc::default();
    let hosts: Vec<Host> =
        (0..).zip(NODES).map(|(number, name)| node(number, name, flaw, &addresses, &promises)).collect();
    let nodes: Vec<_> = hosts.iter().map(|host| SocketAddr::new(host.ip(), PORT)).collect();
    addresses.set(nodes.clone()).unwrap();
    let client = host("client", {
        let nodes = nodes.clone();
        move || COMMANDS.for_each(|command| raft::propose(&nodes, command).unwrap())
    });
    net::loss(0.05);
    for _ in 0..FAULTS {
        fibra::sleep(Duration::from_millis(random_below(300)));
        let [one, other] = [(); 2].map(|()| random_below(3) as usize);
        match random_below(5) {
            0 if one != other => net::partition(NODES[one], NODES[other]),
            1 | 2 if one != other => net::heal(NODES[one], NODES[other]),
            3 => hosts[one].crash(),
            _ => hosts[one].restart(),
        }
    }
    for (index, host) in hosts.iter().enumerate() {
        host.restart();
        NODES[..index].iter().for_each(|other| net::heal(host.name(), other));
    }
    client.join();
    raft::propose(&nodes, LAST_COMMAND).unwrap();
    let promises = promises.lock().unwrap();
    for command in COMMANDS.chain([LAST_COMMAND]) {
        assert!(promises.committed.values().any(|entry| entry.1 == command), "command {command} was lost");
    }
}

fn node(
    number: u64,
    name: &str,
    flaw: Flaw,
    addresses: &Arc<OnceCell<Vec<SocketAddr>>>,
    promises: &Arc<Mutex<Promises>>,
) -> Host {
    let (addresses, promises) = (Arc::clone(addresses), Arc::clone(promises));
    let disk = fibra::sync::Mutex::<Disk>::default();
    host(name, move || {
        let nodes = addresses.wait();
        let observer = |node, event| promises.lock().unwrap().check(node, event);
        Node { number, nodes, disk: &disk, flaw, observer: &observer }.run().unwrap();
    })
}

fn run(seed: u64, flaw: Flaw) -> Result<(), Failure> {
    Sim::builder().seed(seed).build().try_run(move || cluster(flaw)).map(drop)
}

#[fibra::test(seeds = 50)]
fn raft_survives_partitions_and_crashes() {
    cluster(Flaw::None);
}

#[test]
fn a_vote_for_a_node_that_lacks_entries_is_found() {
    let failure = (0..1000).find_map(|seed| run(seed, Flaw::VotesForAny).err());
    let failure = failure.expect("a thousand seeds find the flaw");
    println!("{failure}");
    let reason = failure.reason();
    assert!(reason.contains("two entries"), "{reason}");
    assert!(run(failure.seed(), Flaw::None).is_ok(), "without the flaw that seed passes");
}
