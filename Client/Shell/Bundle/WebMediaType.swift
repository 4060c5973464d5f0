/// The media types of the files of a web app, by the ends of their names.
enum WebMediaType {
  /// Returns the media type; files of an unknown kind are bytes, which no browser runs.
  static func of(_ path: BundlePath) -> String {
    known[path.fileExtension] ?? "application/octet-stream"
  }

  /// Returns whether content of this type, which is no file of the bundle, may be shown. Documents
  /// and scripts may not: they would run as parts of the page.
  static func isPassive(_ type: String) -> Bool {
    let type = type.lowercased()
    if type.hasPrefix("image/") { return !type.hasPrefix("image/svg") }
    return ["audio/", "video/", "font/", "text/plain", "application/pdf", "application/json"]
      .contains { type.hasPrefix($0) }
  }

  private static let known = [
    "html": "text/html; charset=utf-8", "htm": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8", "mjs": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8", "json": "application/json", "map": "application/json",
    "webmanifest": "application/manifest+json", "txt": "text/plain; charset=utf-8",
    "svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg",
    "gif": "image/gif", "webp": "image/webp", "avif": "image/avif", "ico": "image/x-icon",
    "mp4": "video/mp4", "webm": "video/webm", "mp3": "audio/mpeg", "ogg": "audio/ogg",
    "wav": "audio/wav", "woff": "font/woff", "woff2": "font/woff2", "ttf": "font/ttf",
    "wasm": "application/wasm", "pdf": "application/pdf",
  ]
}
