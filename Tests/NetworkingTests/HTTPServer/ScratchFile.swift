import FerryTestSupport
import Foundation

@testable import FerryHTTPServer

/// A file, removed after the test.
final class ScratchFile: Sendable {
  let path: String

  init(_ bytes: [UInt8] = []) throws {
    var template = Array("/tmp/ferry-http-XXXXXX".utf8CString)
    let descriptor = mkstemp(&template)
    guard descriptor >= 0 else { throw ReadableFileError(code: errno) }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { close(descriptor) }
    var written = 0
    while written < bytes.count {
      let count = bytes[written...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 else { throw ReadableFileError(code: errno) }
      written += count
    }
  }

  deinit { unlink(path) }

  /// Returns bytes that differ from place to place.
  static func pattern(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
  }

  func resize(to size: Int) { truncate(path, off_t(size)) }

  func open() throws -> FileContent { FileContent(try ReadableFile(path: path)) }

  /// Descriptors of this process for the file.
  var openDescriptors: Int {
    let directory = "/proc/self/fd"
    let files = FileManager.default
    let names = (try? files.contentsOfDirectory(atPath: directory)) ?? []
    return names.count { name in
      let target = try? files.destinationOfSymbolicLink(atPath: "\(directory)/\(name)")
      return target?.hasPrefix(path) ?? false
    }
  }

  /// Returns when no process has the file open any more.
  func waitUntilClosed() async throws {
    try await eventually("\(path) to be closed") { openDescriptors == 0 }
  }

  /// Returns a handler that serves the file for every request.
  func handler(tag: String = "v1", mediaType: String = "video/mp4") -> HTTPHandler {
    { [self] request in
      guard let content = try? open() else { return HTTPResponse(status: 404) }
      return HTTPResponse(
        answering: request, with: .file(content), tag: EntityTag(strong: tag),
        mediaType: mediaType, cacheControl: "max-age=60, immutable")
    }
  }
}
