/// Writes a run as one self-contained HTML page: no server, no network, no library.
///
/// The timeline comes first, below the verdict. The summary is plain HTML. The page's own script
/// draws the timeline and the list of events from the page's JSON.
package enum ReportPage {
  /// Returns the page's bytes, UTF-8. The same content gives the same bytes.
  package static func html(_ content: ReportContent) -> [UInt8] {
    let data = ReportData(content)
    let moments = data.moments(of: content.violations)
    var page = MarkupWriter()
    page.write(head(content))
    let summary = ReportSummary(content: content, moments: moments, start: data.start)
    page.write(summary.header + "<main>\n" + timeline + summary.violations)
    page.write(lostList + eventList + summary.figures)
    page.write("</main>\n<script>\n\(ReportResources.watch)</script>\n")
    page.write("<script type=\"application/json\" id=\"run-data\">")
    data.write(to: &page)
    page.write(
      "</script>\n<script>\n\"use strict\";\n\(ReportResources.script)</script>\n</body>\n</html>\n"
    )
    return page.bytes
  }

  /// The resources for the browser to load: only those of the page itself.
  private static let policy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"

  private static func head(_ content: ReportContent) -> String {
    let verdict = content.violations.isEmpty ? "passed" : "failed"
    return """
      <!DOCTYPE html>
      <html lang="en" data-state="loading">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta http-equiv="Content-Security-Policy" content="\(policy)">
      <title>Seed \(content.seed) \(verdict) · ferry-sim</title>
      <style>
      \(ReportResources.style)</style>
      </head>
      <body>

      """
  }

  private static let timeline = """
    <section class="timeline" aria-labelledby="timeline-heading">
    <h2 id="timeline-heading">Timeline</h2>
    <noscript><p class="alert">The timeline needs JavaScript; it loads nothing.</p></noscript>
    <p class="alert" id="script-error" role="alert" hidden></p>
    <div class="controls">
    <div class="toolbar" role="toolbar" aria-label="Move in time">
    <button type="button" data-action="zoom-in">Zoom in</button>
    <button type="button" data-action="zoom-out">Zoom out</button>
    <button type="button" data-action="whole-run">Whole run</button>
    <button type="button" data-action="previous-event">← Event</button>
    <button type="button" data-action="next-event">Event →</button>
    <button type="button" data-action="next-violation" id="next-violation">Next violation</button>
    </div>
    <label><input type="checkbox" id="squeeze"> Shorten quiet stretches</label>
    <label class="find">Find
    <input type="search" id="find" placeholder="conflict, crashed, a value"></label>
    </div>
    <canvas id="overview" aria-hidden="true"></canvas>
    <div id="stage">
    <ol id="lanes" aria-label="Lanes, from the top"></ol>
    <canvas id="chart" tabindex="0" role="application" aria-describedby="keys"></canvas>
    <div id="tip" hidden></div>
    </div>
    <p id="legend"></p>
    <div id="story" aria-live="polite"></div>
    <details id="filters">
    <summary>Kinds and actors</summary>
    <div class="presets" role="group" aria-label="Kinds at once">
    <button type="button" data-action="all-kinds">All kinds</button>
    <button type="button" data-action="no-kinds">None</button>
    <button type="button" data-action="fault-kinds">Faults only</button>
    <button type="button" data-action="story-kinds">Without reads and messages</button>
    </div>
    <div id="kinds" class="choices"></div>
    <fieldset id="actors" class="choices"><legend>Actors</legend></fieldset>
    </details>
    <h3 id="phases-heading">Phases of the run</h3>
    <ol id="phases" aria-labelledby="phases-heading"></ol>
    <p id="keys">Drag to move, <kbd>Shift</kbd>-drag to zoom into a stretch,
    <kbd>Ctrl</kbd>-wheel (or the wheel once the timeline has the focus) to zoom.
    <kbd>←</kbd> <kbd>→</kbd> move, <kbd>+</kbd> <kbd>−</kbd> zoom, <kbd>0</kbd> whole run,
    <kbd>N</kbd> <kbd>P</kbd> next and previous event, <kbd>V</kbd> next violation,
    <kbd>Esc</kbd> nothing chosen. The address holds the view.</p>
    </section>

    """

  private static let lostList = """
    <section id="lost" aria-labelledby="lost-heading" hidden>
    <h2 id="lost-heading">Values that lost</h2>
    <p class="explanation">Two devices changed one value, and neither had seen the change of the
    other. The rule of the table chose a winner; a device keeps the other value and its author. Each
    conflict lists the values that its device noted since the conflict before.
    <span id="lost-status" role="status"></span></p>
    <div class="frame" tabindex="0" role="region" aria-labelledby="lost-heading">
    <table>
    <thead><tr><th scope="col">Time</th><th scope="col">Noted by</th><th scope="col">Value</th>
    <th scope="col">Lost</th><th scope="col">Won</th></tr></thead>
    <tbody id="lost-rows"></tbody>
    </table>
    </div>
    </section>

    """

  private static let eventList = """
    <section class="events" aria-labelledby="events-heading">
    <h2 id="events-heading">Events</h2>
    <div class="pager">
    <p id="window-status" role="status"></p>
    <button type="button" data-action="previous-page">Earlier rows</button>
    <button type="button" data-action="next-page">Later rows</button>
    </div>
    <div class="frame" tabindex="0" role="region" aria-labelledby="events-heading">
    <table>
    <thead><tr><th scope="col">Time</th><th scope="col">Who</th><th scope="col">What</th>
    <th scope="col">With</th><th scope="col">Message</th><th scope="col">Text</th></tr></thead>
    <tbody id="rows"></tbody>
    </table>
    </div>
    </section>

    """
}
