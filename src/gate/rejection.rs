//! What a rejected request is answered.

use std::io;

use bson::{RawDocumentBuf, rawdoc};

use crate::plan::GateSettings;
use crate::plan::gate::RATE_LIMIT_EXCEEDED;

/// The server's own words, in its order of fields; without cluster time, which rejections come before.
pub(super) fn document(settings: &GateSettings) -> io::Result<RawDocumentBuf> {
    let labels = bson::RawArrayBuf::from_iter(settings.rejection_labels());
    let name = match settings.code {
        RATE_LIMIT_EXCEEDED => "IngressRequestRateLimitExceeded".to_owned(),
        other => format!("Location{other}"),
    };
    let mut document = rawdoc! {
        "ok": 0.0,
        "errmsg": "Rate limiter 'ingressRequestRateLimiter' rate exceeded",
        "code": settings.code,
        "codeName": name,
        "errorLabels": labels,
    };
    if let Some(base) = settings.base_backoff_ms {
        document.append(bson::raw::cstr!("baseBackoffMS"), base);
    }
    Ok(document)
}
