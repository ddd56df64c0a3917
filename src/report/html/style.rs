//! How a page looks: on light screens, on dark ones, and on paper.

/// Everything but the plots.
pub const PAGE: &str = "\
:root{--ground:#fff;--ink:#1c1c1c;--quiet:#5c5c5c;--rule:#dcdcdc;--tint:#f6f6f4;--warn:#8a3b00;--warn-ground:#fff3e0}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
header,main,footer{max-width:1100px;margin:0 auto;padding:0 20px}
h1{font-size:1.6rem;margin:28px 0 4px}
h2{font-size:1.2rem;margin:36px 0 8px;padding-bottom:4px;border-bottom:1px solid var(--rule)}
h3{font-size:1.02rem;margin:22px 0 6px}
h4{font-size:.95rem;margin:16px 0 4px}
header p,.lead,figcaption,footer{color:var(--quiet)}
header p{margin:0}
.lead{margin:4px 0 10px;font-size:.92rem}
figcaption{font-size:.85rem;margin-top:2px}
figure{margin:0}
svg.plot{width:100%;height:auto;display:block}
.multiples{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(440px,100%),1fr));gap:18px 20px}
.table{overflow-x:auto;margin:6px 0 12px}
table{border-collapse:collapse;font-size:.84rem;font-variant-numeric:tabular-nums}
th,td{padding:3px 7px;text-align:left;border-bottom:1px solid var(--rule);vertical-align:top}
thead th{font-weight:600;white-space:nowrap}
tbody th{font-weight:600;min-width:7em}
.number{text-align:right;white-space:nowrap}
tbody tr:nth-child(even){background:var(--tint)}
pre{background:var(--tint);padding:10px 12px;overflow-x:auto;font-size:.82rem;line-height:1.4}
summary{cursor:pointer;font-weight:600;padding:4px 0}
.warnings{background:var(--warn-ground);color:var(--warn);border-left:4px solid var(--warn);margin:18px 0;\
padding:10px 14px 10px 32px}
.refused{white-space:pre-line;border-left:4px solid var(--rule);padding-left:12px}
footer{font-size:.85rem;margin-top:40px;padding-bottom:30px}
@media screen and (prefers-color-scheme:dark){
:root{--ground:#16181c;--ink:#e8e8e8;--quiet:#a8a8a8;--rule:#353a42;--tint:#1d2025;--warn:#ffb870;--warn-ground:#33230f}
}
@media print{
@page{margin:14mm}
html{font-size:10pt}
body{font-size:10pt}
header,main,footer{max-width:none;padding:0}
h2,h3,h4,summary,h2+.lead{break-after:avoid}
figure,tr,.lead,.warnings{break-inside:avoid}
.multiples{grid-template-columns:1fr 1fr;gap:10px}
.table,pre{overflow:visible}
table{font-size:7.5pt}
th,td{padding:2px 5px}
pre{white-space:pre-wrap;font-size:7.5pt}
details::details-content{content-visibility:visible;height:auto;display:block}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
}
";
