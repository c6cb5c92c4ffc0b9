//! Which tasks nothing can wake, and the cycles among them.
//!
//! A task waits for others, and goes on once enough of them can: for the owner of a lock, for all children of a
//! scope, for any arm of a select. A task that is not stuck lets its waiters go on, and so forth. What is left when
//! that has ended, the greatest fixpoint, is stuck. Each stuck task waits for a stuck one, so all of them lead to
//! cycles: the strongly connected components, found by two searches (S. R. Kosaraju, 1978).

#![forbid(unsafe_code)]

use std::mem;

/// A task, and the tasks that it waits for, by their indexes.
#[derive(Clone, Default, Debug)]
pub(super) struct Node {
    pub(super) waits_for: Vec<usize>,
    /// How many of those must be able to go on before this one can. None for a task that can in any case.
    pub(super) needed: usize,
}

impl Node {
    /// Makes the node of a task that waits for any of these.
    pub(super) fn any_of(waits_for: Vec<usize>) -> Self {
        Node { needed: waits_for.len().min(1), waits_for }
    }

    /// Makes the node of a task that waits for all of these.
    pub(super) fn all_of(waits_for: Vec<usize>) -> Self {
        Node { needed: waits_for.len(), waits_for }
    }
}

/// Returns the cycles, each in the order of its waits, from its least index on.
pub(super) fn cycles(nodes: &[Node]) -> Vec<Vec<usize>> {
    if nodes.iter().all(|node| node.needed == 0) {
        // No task waits for another, as in most dumps: the searches take time for each task.
        return Vec::new();
    }
    let is_stuck = stuck(nodes);
    let of_stuck = |(index, node): (usize, &Node)| match is_stuck[index] {
        true => node.waits_for.iter().copied().filter(|other| is_stuck[*other]).collect(),
        false => Vec::new(),
    };
    let ahead: Vec<Vec<usize>> = nodes.iter().enumerate().map(of_stuck).collect();
    let behind = reversed(&ahead);
    let (mut order, mut seen) = (Vec::new(), vec![false; nodes.len()]);
    (0..nodes.len()).for_each(|from| order.extend(search(&behind, from, &mut seen).1));
    seen.fill(false);
    let component = |from| search(&ahead, from, &mut seen).0;
    let is_cycle = |found: &Vec<usize>| match found.as_slice() {
        [] => false,
        [alone] => ahead[*alone].contains(alone),
        _ => true,
    };
    let mut cycles: Vec<_> = order.into_iter().rev().map(component).filter(is_cycle).collect();
    for cycle in &mut cycles {
        let least = cycle.iter().enumerate().min_by_key(|(_, index)| **index).map_or(0, |(place, _)| place);
        cycle.rotate_left(least);
    }
    cycles.sort_unstable();
    cycles
}

/// Returns which nodes cannot go on.
fn stuck(nodes: &[Node]) -> Vec<bool> {
    let ahead: Vec<_> = nodes.iter().map(|node| node.waits_for.as_slice()).collect();
    let waiters = reversed(&ahead);
    let mut needed: Vec<_> = nodes.iter().map(|node| node.needed).collect();
    let mut free: Vec<_> = (0..nodes.len()).filter(|index| needed[*index] == 0).collect();
    while let Some(index) = free.pop() {
        for &waiter in &waiters[index] {
            // At none it is free already.
            let left = needed[waiter].saturating_sub(1);
            if mem::replace(&mut needed[waiter], left) == 1 {
                free.push(waiter);
            }
        }
    }
    needed.into_iter().map(|needed| needed > 0).collect()
}

fn reversed(ahead: &[impl AsRef<[usize]>]) -> Vec<Vec<usize>> {
    let mut behind = vec![Vec::new(); ahead.len()];
    for (index, ahead) in ahead.iter().enumerate() {
        ahead.as_ref().iter().for_each(|other| behind[*other].push(index));
    }
    behind
}

/// Searches in depth. Returns what it has found that was not seen: in the order of arrival, and of departure.
fn search(ahead: &[Vec<usize>], from: usize, seen: &mut [bool]) -> (Vec<usize>, Vec<usize>) {
    let (mut arrived, mut left, mut path) = (Vec::new(), Vec::new(), Vec::new());
    let mut next = Some(from);
    loop {
        if let Some(index) = next.filter(|index| !mem::replace(&mut seen[*index], true)) {
            arrived.push(index);
            path.push((index, ahead[index].iter()));
        }
        let Some((index, rest)) = path.last_mut() else { return (arrived, left) };
        next = rest.next().copied();
        if next.is_none() {
            left.push(*index);
            path.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(index: usize) -> Node {
        Node::any_of(vec![index])
    }

    fn live() -> Node {
        Node::default()
    }

    /// A wait that a deadline, or an arm of no task, may end.
    fn timed(index: usize) -> Node {
        Node { waits_for: vec![index], needed: 0 }
    }

    #[test]
    fn tasks_that_wait_for_each_other_are_a_cycle_in_the_order_of_their_waits() {
        assert_eq!(cycles(&[one(1), one(0)]), [[0, 1]]);
        assert_eq!(cycles(&[live(), one(3), one(1), one(2)]), [[1, 3, 2]]);
        assert_eq!(cycles(&[one(1), one(0), one(3), one(2)]), [[0, 1], [2, 3]]);
        assert_eq!(cycles(&[one(0)]), [[0]], "a task that waits for itself");
    }

    #[test]
    fn a_chain_that_ends_in_a_live_task_is_none() {
        assert!(cycles(&[]).is_empty());
        assert!(cycles(&[one(1), one(2), live()]).is_empty());
        assert!(cycles(&[one(1), timed(0)]).is_empty());
    }

    #[test]
    fn tasks_behind_a_cycle_are_stuck_and_not_part_of_it() {
        let nodes = [one(1), one(2), one(1), one(0)];
        assert_eq!(stuck(&nodes), [true; 4]);
        assert_eq!(cycles(&nodes), [[1, 2]]);
    }

    #[test]
    fn any_live_arm_ends_a_wait_for_any() {
        let select = Node::any_of;
        assert!(cycles(&[select(vec![1, 2]), one(0), live()]).is_empty());
        assert_eq!(cycles(&[select(vec![1, 2]), one(0), one(0)]), [[0, 1, 2]]);
    }

    #[test]
    fn one_stuck_child_holds_a_wait_for_all() {
        let scope = Node::all_of;
        assert_eq!(cycles(&[scope(vec![1, 2]), live(), one(0)]), [[0, 2]]);
        assert!(cycles(&[scope(vec![1, 2]), live(), live()]).is_empty());
        assert!(cycles(&[scope(vec![])]).is_empty());
    }

    #[test]
    fn a_long_chain_takes_no_stack_and_no_square_of_its_length() {
        const LENGTH: usize = 100_000;
        let chain = |last| (1..LENGTH).map(one).chain([last]).collect::<Vec<_>>();
        assert!(cycles(&chain(live())).is_empty());
        assert_eq!(cycles(&chain(one(0)))[0].len(), LENGTH);
    }

    #[test]
    fn random_graphs_agree_with_the_definition() {
        const NODES: usize = 7;
        let mut state = 1_u64;
        let mut dice = move |sides: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % sides
        };
        for _ in 0..2000 {
            let nodes: Vec<Node> = (0..NODES)
                .map(|_| {
                    let waits_for: Vec<usize> = (0..dice(4)).map(|_| dice(NODES as u64) as usize).collect();
                    let needed = dice(waits_for.len() as u64 + 1) as usize;
                    Node { waits_for, needed }
                })
                .collect();
            let mut is_stuck = [true; NODES];
            for _ in 0..NODES {
                for (index, node) in nodes.iter().enumerate() {
                    let live = node.waits_for.iter().filter(|other| !is_stuck[**other]).count();
                    is_stuck[index] &= live < node.needed;
                }
            }
            assert_eq!(stuck(&nodes), is_stuck, "{nodes:?}");
            // Paths of any length between stuck nodes.
            let mut leads = [[false; NODES]; NODES];
            for (index, node) in nodes.iter().enumerate().filter(|(index, _)| is_stuck[*index]) {
                node.waits_for.iter().for_each(|other| leads[index][*other] |= is_stuck[*other]);
            }
            for (middle, from, to) in (0..NODES.pow(3)).map(|n| (n / 49, n / 7 % 7, n % 7)) {
                leads[from][to] |= leads[from][middle] && leads[middle][to];
            }
            let mut found = cycles(&nodes);
            found.iter_mut().for_each(|cycle| cycle.sort_unstable());
            let component =
                |from: usize| (0..NODES).filter(move |to| leads[from][*to] && leads[*to][from]).collect();
            let mut expected: Vec<Vec<usize>> =
                (0..NODES).map(component).filter(|all: &Vec<_>| !all.is_empty()).collect();
            expected.sort();
            expected.dedup();
            assert_eq!(found, expected, "{nodes:?}");
        }
    }
}
