import FerryPlatform
import FerryProtocol

/// The type of a file, by the end of the name; pure.
package struct MediaType: Sendable, Equatable {
  package let kind: MissionItemKind
  /// RFC 6838.
  package let name: String

  /// The type of a file with an unknown extension.
  package static let unknown = MediaType(.file, "application/octet-stream")

  private init(_ kind: MissionItemKind, _ name: String) {
    (self.kind, self.name) = (kind, name)
  }

  /// Finds the type by the last name in a path; letters of either case.
  package init(ofPath path: String) {
    let name = path.words(at: "/").last ?? ""
    guard let dot = name.last("."), dot > name.startIndex else {
      self = .unknown
      return
    }
    self = Self.byExtension[name[name.utf8.index(after: dot)...].lowercasedASCII] ?? .unknown
  }

  private static let byExtension: [String: MediaType] = [
    "mp4": MediaType(.video, "video/mp4"), "m4v": MediaType(.video, "video/mp4"),
    "mov": MediaType(.video, "video/quicktime"), "webm": MediaType(.video, "video/webm"),
    "mkv": MediaType(.video, "video/matroska"), "avi": MediaType(.video, "video/vnd.avi"),
    "mpg": MediaType(.video, "video/mpeg"), "mpeg": MediaType(.video, "video/mpeg"),
    "ts": MediaType(.video, "video/mp2t"), "ogv": MediaType(.video, "video/ogg"),
    "mp3": MediaType(.audio, "audio/mpeg"), "m4a": MediaType(.audio, "audio/mp4"),
    "aac": MediaType(.audio, "audio/aac"), "wav": MediaType(.audio, "audio/vnd.wave"),
    "flac": MediaType(.audio, "audio/flac"), "ogg": MediaType(.audio, "audio/ogg"),
    "oga": MediaType(.audio, "audio/ogg"), "opus": MediaType(.audio, "audio/ogg"),
    "mid": MediaType(.audio, "audio/midi"), "aiff": MediaType(.audio, "audio/aiff"),
    "png": MediaType(.image, "image/png"), "jpg": MediaType(.image, "image/jpeg"),
    "jpeg": MediaType(.image, "image/jpeg"), "gif": MediaType(.image, "image/gif"),
    "webp": MediaType(.image, "image/webp"), "avif": MediaType(.image, "image/avif"),
    "heic": MediaType(.image, "image/heic"), "heif": MediaType(.image, "image/heif"),
    "svg": MediaType(.image, "image/svg+xml"), "bmp": MediaType(.image, "image/bmp"),
    "tif": MediaType(.image, "image/tiff"), "tiff": MediaType(.image, "image/tiff"),
    "ico": MediaType(.image, "image/vnd.microsoft.icon"),
    "zip": MediaType(.archive, "application/zip"), "gz": MediaType(.archive, "application/gzip"),
    "tgz": MediaType(.archive, "application/gzip"), "tar": MediaType(.archive, "application/x-tar"),
    "zst": MediaType(.archive, "application/zstd"),
    "7z": MediaType(.archive, "application/x-7z-compressed"),
    "bz2": MediaType(.archive, "application/x-bzip2"),
    "xz": MediaType(.archive, "application/x-xz"),
    "json": MediaType(.json, "application/json"),
    "geojson": MediaType(.json, "application/geo+json"),
    "html": MediaType(.file, "text/html"), "htm": MediaType(.file, "text/html"),
    "css": MediaType(.file, "text/css"), "js": MediaType(.file, "text/javascript"),
    "mjs": MediaType(.file, "text/javascript"), "wasm": MediaType(.file, "application/wasm"),
    "txt": MediaType(.file, "text/plain"), "md": MediaType(.file, "text/markdown"),
    "csv": MediaType(.file, "text/csv"), "xml": MediaType(.file, "application/xml"),
    "yaml": MediaType(.file, "application/yaml"), "yml": MediaType(.file, "application/yaml"),
    "vtt": MediaType(.file, "text/vtt"), "pdf": MediaType(.file, "application/pdf"),
    "epub": MediaType(.file, "application/epub+zip"),
    "woff": MediaType(.file, "font/woff"), "woff2": MediaType(.file, "font/woff2"),
    "ttf": MediaType(.file, "font/ttf"), "otf": MediaType(.file, "font/otf"),
  ]
}
