/// The page's script, in parts that share one scope: each part defines, the last one starts.
enum ReportScript {
  static let text =
    "\"use strict\";\n" + kinds + model + scale + view + canvas + marks + pointer + controls
    + eventList + start

  /// Runs first: it shows later errors on the page, and marks the page as broken.
  static let watch = #"""
    "use strict";
    window.addEventListener("error", (event) => {
      const alert = document.getElementById("script-error");
      alert.textContent = `The timeline is broken: ${event.message} (line ${event.lineno})`;
      alert.hidden = false;
      document.documentElement.dataset.state = "broken";
    });

    """#
}
