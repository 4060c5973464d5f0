/// The page's style sheet. Colours are variables, which the script reads too.
enum ReportStyle {
  static let text = colours + summary + timeline + events

  private static let colours = #"""
    :root {
      color-scheme: light dark;
      --paper: #f6f7f9; --panel: #ffffff; --ink: #1a1f26; --quiet: #57606c;
      --rule: #d5dae1; --band: #eef1f5; --lane: #aab3bf; --focus: #0b57d0;
      --blue: #1f66d6; --teal: #0b7f7a; --green: #1c8a3f; --grey: #76808d;
      --amber: #b07400; --orange: #c4500c; --red: #cf1f32; --pink: #b4217f;
      --violet: #7442cc; --brown: #8a5a2b;
      --safety: #fbeaea; --heal: #fdf5dc; --liveness: #e6f5ea; --other-phase: #e9eff9;
      --pass: #17713a; --fail: #b71c2c; --on-verdict: #ffffff;
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --paper: #14171c; --panel: #1b2027; --ink: #e7eaee; --quiet: #a3adba;
        --rule: #343c47; --band: #20262f; --lane: #566170; --focus: #8ab4ff;
        --blue: #6aa6ff; --teal: #3fc1b8; --green: #57c97b; --grey: #8f9aa8;
        --amber: #e5b045; --orange: #ff9152; --red: #ff6573; --pink: #f07ac0;
        --violet: #b794ff; --brown: #cfa071;
        --safety: #2b1d22; --heal: #2b2719; --liveness: #18291f; --other-phase: #1c2533;
        --pass: #1c7f43; --fail: #c22b3b; --on-verdict: #ffffff;
      }
    }

    """#

  private static let summary = #"""
    * { box-sizing: border-box; }
    [hidden] { display: none !important; }
    body {
      margin: 0; background: var(--paper); color: var(--ink);
      font: 15px/1.45 system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif;
      font-variant-numeric: tabular-nums;
    }
    code, kbd { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
    h1, h2, p, dl, dd, ol { margin: 0; padding: 0; }
    h2 { font-size: 1.05rem; margin-bottom: .5rem; }
    a { color: var(--focus); }
    :focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
    header { color: var(--on-verdict); padding: 1.1rem clamp(1rem, 3vw, 2.5rem) 1.2rem; }
    header.passed { background: var(--pass); }
    header.failed { background: var(--fail); }
    header .kicker { font-size: .9rem; }
    header h1 { font-size: 2.1rem; line-height: 1.15; display: inline-block; margin-right: .7rem; }
    header .found { display: inline-block; font-size: 1.1rem; }
    header .hash { font-size: .85rem; margin-top: .5rem; overflow-wrap: anywhere; }
    header :focus-visible { outline-color: var(--on-verdict); }
    .replay { display: flex; flex-wrap: wrap; align-items: center; gap: .6rem; margin-top: .7rem; }
    .replay h2 { font-size: .9rem; margin: 0; }
    .replay code {
      background: #0006; border-radius: 6px; padding: .35rem .7rem; overflow-wrap: anywhere;
      user-select: all; font-size: .9rem;
    }
    main { padding: 1rem clamp(1rem, 3vw, 2.5rem) 2rem; display: grid; gap: 1rem; }
    main > section, .summary > section {
      background: var(--panel); border: 1px solid var(--rule); border-radius: 10px;
      padding: .9rem 1.1rem; min-width: 0;
    }
    .summary { display: grid; gap: 1rem; }
    .violations { border-left: 6px solid var(--fail) !important; }
    .violations ol { padding-left: 1.4rem; max-height: 16rem; overflow: auto; }
    .violations li { padding: .15rem 0; overflow-wrap: anywhere; }
    .violations span { unicode-bidi: isolate; }
    .bars > div {
      display: grid; grid-template-columns: 8.5rem 1fr; gap: .6rem; break-inside: avoid;
    }
    .bars dt, #options dt { color: var(--quiet); overflow-wrap: anywhere; }
    .bars dd { display: flex; align-items: center; gap: .45rem; }
    .bar {
      height: .62rem; border-radius: 3px; background: var(--bar, var(--blue)); min-width: 3px;
      width: calc((100% - 3.6rem) * var(--share) / 1000);
    }
    #faults { --bar: var(--orange); }
    .none .bar { background: var(--rule); }
    .none dd { color: var(--quiet); }
    .bars { columns: 16rem; column-gap: 1.5rem; }
    .options summary { cursor: pointer; }
    .options h2 { display: inline; }
    #options { columns: 15rem; column-gap: 2.5rem; margin-top: .5rem; }
    #options div { break-inside: avoid; display: flex; justify-content: space-between; gap: .8rem; }
    #options dd { text-align: right; overflow-wrap: anywhere; }

    """#

  private static let timeline = #"""
    button, input[type="search"] {
      font: inherit; font-size: .88rem; color: var(--ink); background: var(--band);
      border: 1px solid var(--rule); border-radius: 6px; padding: .28rem .65rem;
    }
    button { cursor: pointer; }
    button:hover:not(:disabled) { border-color: var(--quiet); }
    button:disabled { color: var(--quiet); cursor: default; opacity: .6; }
    .alert {
      background: var(--fail); color: var(--on-verdict); border-radius: 6px;
      padding: .5rem .8rem; margin-bottom: .6rem;
    }
    .toolbar, .presets { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem .5rem; }
    .toolbar label { font-size: .88rem; display: flex; align-items: center; gap: .3rem; }
    .toolbar .find { margin-left: auto; }
    .find input { width: 13rem; max-width: 60vw; }
    #filters { margin: .6rem 0; font-size: .88rem; }
    #filters summary { cursor: pointer; color: var(--quiet); }
    .presets { margin: .45rem 0; }
    fieldset {
      border: 1px solid var(--rule); border-radius: 6px; margin: 0; padding: .15rem .6rem .35rem;
      min-width: 0;
    }
    legend { color: var(--quiet); padding: 0 .3rem; }
    #kinds { display: flex; flex-wrap: wrap; gap: .5rem; margin-bottom: .5rem; }
    .choices label { display: inline-flex; align-items: center; gap: .25rem; margin-right: .8rem; }
    .choices canvas { width: 16px; height: 16px; }
    .choices .count { color: var(--quiet); }
    input[type="checkbox"] { accent-color: var(--focus); margin: 0; }
    #legend { font-size: .85rem; color: var(--quiet); margin-bottom: .4rem; }
    #legend span { display: inline-flex; align-items: center; gap: .35rem; margin-right: 1rem; }
    #legend i { width: 1.6rem; border-top: 2px solid; display: inline-block; }
    #overview, #chart { display: block; width: 100%; touch-action: pan-y; }
    #overview {
      height: 46px; border: 1px solid var(--rule); border-radius: 6px; cursor: grab;
      margin-bottom: .5rem;
    }
    #stage { position: relative; display: grid; grid-template-columns: auto minmax(0, 1fr); }
    #lanes { list-style: none; padding-top: 30px; max-width: min(10rem, 24vw); }
    #lanes li {
      padding-right: .6rem; font-size: .82rem; display: flex; align-items: center;
      justify-content: flex-end; text-align: right;
    }
    #lanes span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    #lanes .server { font-weight: 650; }
    #chart { cursor: crosshair; border-radius: 4px; }
    #chart.moving { cursor: grabbing; }
    #tip {
      position: absolute; z-index: 2; max-width: min(30rem, 80vw); pointer-events: none;
      background: var(--panel); color: var(--ink); border: 1px solid var(--quiet);
      border-radius: 6px; padding: .35rem .6rem; font-size: .84rem;
      box-shadow: 0 4px 14px #0005; overflow-wrap: anywhere;
    }
    #tip p + p { border-top: 1px solid var(--rule); margin-top: .25rem; padding-top: .25rem; }
    #keys { font-size: .82rem; color: var(--quiet); margin-top: .5rem; }
    kbd {
      border: 1px solid var(--rule); border-bottom-width: 2px; border-radius: 4px;
      padding: 0 .3rem; background: var(--band); font-size: .92em;
    }
    #story:not(:empty) {
      margin-top: .7rem; border-left: 4px solid var(--focus); padding: .2rem 0 .2rem .9rem;
    }
    #story h3 { margin: 0 0 .2rem; font-size: .95rem; }
    #story ol { padding-left: 1.5rem; font-size: .88rem; max-height: 15rem; overflow: auto; }

    """#

  private static let events = #"""
    .pager { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem; }
    .pager p { margin-right: auto; color: var(--quiet); font-size: .88rem; }
    .frame { overflow: auto; max-height: 30rem; margin-top: .5rem; }
    table { border-collapse: collapse; width: 100%; font-size: .86rem; }
    th, td {
      text-align: left; padding: .2rem .7rem .2rem .3rem; border-bottom: 1px solid var(--rule);
      vertical-align: top; white-space: nowrap;
    }
    td:last-child { white-space: normal; overflow-wrap: anywhere; width: 60%; min-width: 14rem; }
    td, #tip, #story li { unicode-bidi: isolate; }
    thead th { position: sticky; top: 0; background: var(--panel); color: var(--quiet); }
    tbody tr:hover { background: var(--band); }
    tbody tr[aria-current] { background: var(--band); box-shadow: inset 4px 0 var(--focus); }
    .moment {
      border: 0; background: none; padding: 0; color: var(--focus); text-decoration: underline;
      font-size: inherit;
    }
    .tone::before {
      content: ""; display: inline-block; width: .6em; height: .6em; border-radius: 50%;
      background: var(--tone); margin-right: .45em;
    }
    @media (max-width: 640px) {
      .toolbar .find { margin-left: 0; }
    }

    """#
}
