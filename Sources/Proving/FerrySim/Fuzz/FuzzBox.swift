import Foundation

/// The present input of a process, in a file that survives a crash of the process.
struct FuzzBox: ~Copyable {
  private let descriptor: Int32

  /// Opens the file for a reader of inputs.
  init(writing path: String) throws {
    let opened = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard opened >= 0 else {
      throw FuzzFinding("the file \(path) for the present input cannot be opened")
    }
    descriptor = opened
  }

  deinit { close(descriptor) }

  /// Writes the input of a target, by the target's place in the list.
  func write(_ target: Int, _ bytes: [UInt8]) throws {
    let head = [Int32(target), Int32(bytes.count)].withUnsafeBytes { Array($0) }
    let all = head + bytes
    guard pwrite(descriptor, all, all.count, 0) == all.count else {
      throw FuzzFinding("the present input cannot be noted")
    }
  }

  /// Reads the last input of an ended process; `nil` if there was none.
  static func read(_ path: String) -> (target: Int, bytes: [UInt8])? {
    guard let data = FileManager.default.contents(atPath: path), data.count >= 8 else { return nil }
    return Array(data).withUnsafeBytes { bytes in
      let target = Int(bytes.loadUnaligned(as: Int32.self))
      let count = Int(bytes.loadUnaligned(fromByteOffset: 4, as: Int32.self))
      guard count >= 0, 8 + count <= bytes.count else { return nil }
      return (target, Array(bytes[8..<8 + count]))
    }
  }
}
