import FerrySyncServer
import Foundation

/// A file with the level of the log as the only word.
struct LogLevelFile: Sendable {
  /// The reason why a file has no level.
  struct Fault: Error, CustomStringConvertible {
    let description: String
  }

  /// The possible words of such a file.
  static let levels = LogLevel.allCases.map(\.rawValue).joined(separator: ", ")
  /// The largest file, in bytes.
  private static let byteCountMax = 256

  let path: String

  func read() throws(Fault) -> LogLevel {
    guard let file = FileHandle(forReadingAtPath: path) else {
      throw Fault(description: "\(path): \(String(cString: strerror(errno)))")
    }
    defer { try? file.close() }
    let content: Data?
    do {
      content = try file.read(upToCount: Self.byteCountMax + 1)
    } catch {
      throw Fault(description: "\(path): \(error.localizedDescription)")
    }
    guard let level = Self.level(in: Array(content ?? Data())) else {
      throw Fault(description: "\(path) has to contain one word: \(Self.levels)")
    }
    return level
  }

  /// Returns the level named by a file's content, without spaces and ends of lines around it.
  static func level(in content: [UInt8]) -> LogLevel? {
    guard content.count <= byteCountMax else { return nil }
    let words = content.split { $0 == 0x20 || (0x09...0x0D).contains($0) }
    guard words.count == 1 else { return nil }
    return LogLevel(rawValue: String(decoding: words[0], as: UTF8.self))
  }

  /// Sets the log to the file's present level. Reports a file without a level; the old level stays
  /// then.
  func reload(_ log: ServiceLog) {
    do {
      let level = try read()
      log.setLevel(level)
      log.write(.info, "the log level is read again", detail: level.rawValue)
    } catch {
      log.write(
        .error, "the log level cannot be read and stays as it is", detail: error.description)
    }
  }
}
