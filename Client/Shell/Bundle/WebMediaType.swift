import FerryPlatform

/// The media types of the files of a web app, by the ends of their names.
enum WebMediaType {
  /// Returns the media type; files of an unknown kind are bytes: no browser runs them.
  static func of(_ path: BundlePath) -> String {
    known[path.fileExtension] ?? opaque
  }

  /// The type of bytes not shown or run by any browser.
  private static let opaque = "application/octet-stream"

  /// Returns the media type for content other than a file of the bundle. Documents and scripts are
  /// bytes: they would run as parts of the page.
  ///
  /// Only the type and the subtype are sent. Of a list, browsers use the last type (Fetch, "extract
  /// a MIME type"), so a list is no type here.
  static func passive(_ type: String) -> String {
    let words = type.until(";").fields
    guard words.count == 1 else { return opaque }
    let essence = words[0].lowercasedASCII
    let names = essence.parts(at: "/")
    guard names.count == 2, names.allSatisfy({ isToken($0) }) else { return opaque }
    let isPassive =
      switch names[0] {
      case "image": !names[1].begins(with: "svg")
      case "audio", "video", "font": true
      default: ["text/plain", "application/pdf", "application/json"].contains(essence)
      }
    return isPassive ? essence : opaque
  }

  /// Returns true if it is a name of a type or a subtype, in lower case (RFC 6838 §4.2).
  private static func isToken(_ name: Substring) -> Bool {
    !name.isEmpty
      && name.utf8.allSatisfy {
        0x30...0x39 ~= $0 || 0x61...0x7A ~= $0 || "!#$&-^_.+".utf8.contains($0)
      }
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
