//! What an application does about rejection, as pure state machines: they are told what happened and say what to do.

pub mod backoff;
