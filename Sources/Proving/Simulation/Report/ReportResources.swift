/// The script and the style sheet of the report page, from the files in `Page`.
enum ReportResources {
  /// The script, in parts with one scope: each part defines, the last one starts.
  static let script = text([
    PackageResources.kinds_js, PackageResources.model_js, PackageResources.scale_js,
    PackageResources.phases_js, PackageResources.lost_js, PackageResources.view_js,
    PackageResources.canvas_js, PackageResources.marks_js,
    PackageResources.pointer_js, PackageResources.controls_js, PackageResources.event_list_js,
    PackageResources.start_js,
  ])

  /// The first script: it shows later errors on the page, and marks the page as broken.
  static let watch = text([PackageResources.watch_js])

  /// The style sheet. Colours are variables, which the script reads too.
  static let style = text([PackageResources.style_css])

  private static func text(_ parts: [[UInt8]]) -> String {
    parts.map { String(decoding: $0, as: UTF8.self) }.joined()
  }
}
