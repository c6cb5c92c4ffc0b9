//! Virtual time: the next actor, and its time.
//!
//! Every actor is a task of fibra on one real worker. It acts alone, at one moment of virtual time, until it lets time
//! pass. Then the actor with the earliest time goes on; of two with equal times, the first that asked. So runs repeat
//! exactly, and the actors read as the code that they stand for, with the costs written in between.

use std::cell::{Cell, OnceCell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fibra_runtime::task::{self, Task};

use crate::random::Random;

/// Whether what is done takes the time that it takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    Even,
    /// Now and then an actor is held up for a while, as an interrupt does: so that every step meets every other.
    Interrupted,
}

/// An interrupted actor is held up at one step of so many, for so long at the most.
const ONE_IN: u64 = 8;
pub(crate) const HOLD_UP: u64 = 10_000;

pub(crate) struct Clock {
    now: Cell<u64>,
    pace: Pace,
    random: RefCell<Random>,
    asked: Cell<u64>,
    /// Time, request, actor.
    due: RefCell<BinaryHeap<Reverse<(u64, u64, usize)>>>,
    actors: Vec<Actor>,
    /// The thread that waits until all actors are idle.
    audience: OnceCell<Task>,
}

#[derive(Default)]
struct Actor {
    task: OnceCell<Task>,
    /// The request that counts, 0 where there is none. The others of this actor were overtaken.
    request: Cell<u64>,
}

impl Clock {
    pub(crate) fn new(actors: usize, pace: Pace) -> Clock {
        Clock {
            now: Cell::new(0),
            pace,
            random: RefCell::new(Random::new()),
            asked: Cell::new(0),
            due: RefCell::default(),
            actors: (0..actors).map(|_| Actor::default()).collect(),
            audience: OnceCell::new(),
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.get()
    }

    /// Runs the actors, which begin by [`enter`](Clock::enter), from time 0 until none of them has anything to do.
    pub(crate) fn run(&self, actors: impl Iterator<Item = Task>) {
        for (actor, task) in actors.enumerate() {
            assert!(self.actors[actor].task.set(task).is_ok(), "a clock runs once");
            self.ask(actor, 0);
        }
        assert!(self.audience.set(task::current()).is_ok());
        self.hand_over();
        task::park();
    }

    /// By an actor: waits for the beginning.
    pub(crate) fn enter(&self) {
        task::park();
    }

    /// By an actor: acts for so long.
    pub(crate) fn spend(&self, actor: usize, time: u64) {
        self.sleep(actor, Some(self.now() + time + self.hold_up()));
    }

    fn hold_up(&self) -> u64 {
        if self.pace == Pace::Even {
            return 0;
        }
        let mut random = self.random.borrow_mut();
        if random.below(ONE_IN) == 0 { random.below(HOLD_UP) } else { 0 }
    }

    /// By an actor: does nothing until that time, or until it is roused.
    pub(crate) fn sleep(&self, actor: usize, until: Option<u64>) {
        if let Some(until) = until {
            let next = self.due.borrow().peek().map_or(u64::MAX, |Reverse((at, ..))| *at);
            if until < next {
                return self.now.set(until);
            }
            self.ask(actor, until);
        }
        // Where it is itself the next, the token is there already, and this returns at once.
        self.hand_over();
        task::park();
    }

    /// Ends another one's sleep at that time, whatever it asked for.
    pub(crate) fn rouse(&self, actor: usize, at: u64) {
        self.ask(actor, at);
    }

    /// By an actor: has nothing to do any more. It is cancelled with its runtime.
    pub(crate) fn leave(&self) -> ! {
        self.hand_over();
        loop {
            task::park();
        }
    }

    fn ask(&self, actor: usize, at: u64) {
        let request = self.asked.get() + 1;
        self.asked.set(request);
        self.actors[actor].request.set(request);
        self.due.borrow_mut().push(Reverse((at, request, actor)));
    }

    /// Lets the next one act, or in the end the audience.
    fn hand_over(&self) {
        let task = match self.next() {
            Some(actor) => &self.actors[actor].task,
            None => &self.audience,
        };
        task.get().expect("set before the run").unpark();
    }

    fn next(&self) -> Option<usize> {
        loop {
            let Reverse((at, request, actor)) = self.due.borrow_mut().pop()?;
            if self.actors[actor].request.get() == request {
                self.actors[actor].request.set(0);
                self.now.set(at);
                return Some(actor);
            }
        }
    }
}
