//! One face for both engines, so that HTTP and the commands are written once.
//!
//! It must never add behaviour: what an engine promises is the business of `ichido::Store`.

mod decisions;
mod endpoints;
mod open;
mod postgres;
mod sqlite;

use std::{future::Future, pin::Pin, sync::Arc};

use ichido::{Desk, EndpointSpec, Error, Finding, Inbox, ReceiveError, Received, Stats, Taken};
use ichido_verify::Request;

pub(crate) use decisions::Decisions;
pub(crate) use endpoints::settings;
pub(crate) use open::{migrate, open, problems, reader, specs};

/// A future behind a trait object.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Is told what a receive committed, and owns what is held until then.
pub(crate) type Ended = Box<dyn FnOnce(&Result<Vec<Taken>, Error>) + Send>;

/// Is told of each attempt of a worker that ended.
pub(crate) type Observe = Box<dyn Fn(&ichido::Ended<'_>) + Send + Sync>;

/// An inbox of either engine.
pub(crate) trait Engine: Decisions + Send + Sync {
    /// See [`Inbox::receive_and`], also for cancel safety.
    fn receive<'a>(
        &'a self,
        endpoint: &'a str,
        request: Request,
        ended: Ended,
    ) -> Boxed<'a, Result<Received, ReceiveError>>;

    /// Runs handlers for what was stored first, until `stop` is done. See [`ichido::Worker::run`].
    fn work(
        &self,
        concurrency: usize,
        observe: Observe,
        stop: Boxed<'static, ()>,
    ) -> Boxed<'static, ()>;

    /// See [`ichido::Store::check`].
    fn check(&self) -> Boxed<'_, Result<(), Error>>;

    /// See [`ichido::Store::stats`].
    fn stats(&self) -> Boxed<'_, Result<Stats, Error>>;

    /// See [`ichido::Store::audit`].
    fn audit(&self) -> Boxed<'_, Result<Vec<Finding>, Error>>;

    /// See [`ichido::Store::close`].
    fn close(&self) -> Boxed<'_, ()>;

    /// The engine's name in log lines.
    fn name(&self) -> &'static str;

    /// The settings of every endpoint, by name.
    fn endpoints(&self) -> Vec<Arc<EndpointSpec>>;
}

/// An inbox with the name of its engine.
struct Named<S: Desk>(&'static str, Inbox<S>);

impl<S: Desk> Engine for Named<S> {
    fn receive<'a>(
        &'a self,
        endpoint: &'a str,
        request: Request,
        ended: Ended,
    ) -> Boxed<'a, Result<Received, ReceiveError>> {
        Box::pin(self.1.receive_and(endpoint, request, ended))
    }

    fn work(
        &self,
        concurrency: usize,
        observe: Observe,
        stop: Boxed<'static, ()>,
    ) -> Boxed<'static, ()> {
        Box::pin(self.1.worker().concurrency(concurrency).observe(observe).run(stop))
    }

    fn check(&self) -> Boxed<'_, Result<(), Error>> {
        Box::pin(self.1.store().check())
    }

    fn stats(&self) -> Boxed<'_, Result<Stats, Error>> {
        Box::pin(self.1.store().stats())
    }

    fn audit(&self) -> Boxed<'_, Result<Vec<Finding>, Error>> {
        Box::pin(self.1.store().audit())
    }

    fn close(&self) -> Boxed<'_, ()> {
        Box::pin(self.1.store().close())
    }

    fn name(&self) -> &'static str {
        self.0
    }

    fn endpoints(&self) -> Vec<Arc<EndpointSpec>> {
        let mut all: Vec<_> = self.1.endpoints().cloned().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}
