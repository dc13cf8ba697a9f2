//! A bus on loopback, with clients that mean well, clients that do not, and clients that were written by others.

#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod admin;
mod agent_faults;
mod bad_bytes;
mod bad_input;
mod bad_order;
mod cli;
mod command;
mod demo;
mod durable;
mod file_agent;
mod foreign;
mod full_disk;
mod grpcurl;
mod honest;
mod hostile;
mod http_client;
mod limits;
mod local;
mod machine;
mod many_sessions;
mod metrics;
mod namespace;
mod namespaces;
mod network;
mod new;
mod nginx;
mod outside;
mod policies;
mod process;
mod python_agent;
mod raw;
mod server;
mod serving;
mod stopped;
mod storm;
mod story;
mod tutorial;
mod upgrade;
mod user;
mod wait;
mod wakes;
mod walkthrough;
