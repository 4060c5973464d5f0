/// The fields of every answer, to keep a page apart from all others.
enum ContentPolicy {
  /// Content-Security-Policy of every answer: only the bundle's own files, no inline scripts, no
  /// frames, no forms, no connection to another origin.
  static let policy = [
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data: blob:",
    "media-src 'self' blob:", "font-src 'self'", "connect-src 'self'", "manifest-src 'self'",
    "form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'",
  ].joined(separator: "; ")

  /// The policy's field.
  static let name = "Content-Security-Policy"

  /// The policy of content other than a file of the bundle: it runs nothing and loads nothing.
  static let ofContent = (name: name, value: "default-src 'none'; sandbox; frame-ancestors 'none'")

  static let fields: [(name: String, value: String)] = [
    ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"), ("Cross-Origin-Opener-Policy", "same-origin"),
  ]

  /// Returns the policy's field.
  ///
  /// - Parameter report: the address for violations before `ferry.js` runs.
  static func field(report: String? = nil) -> (name: String, value: String) {
    (name, policy + (report.map { "; report-uri \($0)" } ?? ""))
  }
}
