import FerryPlatform
import Foundation

/// The embedded store's directory.
enum DataDirectory {
  /// Makes it when absent, for this user only.
  static func prepare(_ path: String) throws(FerryServerError) {
    do {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
    } catch {
      throw .dataDirectory(path, reason: reason(path, error))
    }
    guard access(path, W_OK | X_OK) == 0 else {
      throw .dataDirectory(path, reason: String(cString: strerror(errno)))
    }
  }

  private static func reason(_ path: String, _ error: any Error) -> String {
    var isDirectory: ObjCBool = false
    if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory),
      !isDirectory.boolValue
    {
      return "a file has this name"
    }
    let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
    guard let cause, cause.domain == NSPOSIXErrorDomain else { return error.localizedDescription }
    return String(cString: strerror(Int32(cause.code)))
  }
}

/// The lock of a server on its data directory, so a second server is turned away. Other processes
/// may open the store beside it, as `ferryd token create` does. The system releases it at any end
/// of the process.
final class DataLock: Sendable {
  private let descriptor: Int32

  /// Throws `dataInUse` when another server holds it.
  init(directory: String) throws(FerryServerError) {
    let path = directory + "/ferryd.lock"
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw .dataDirectory(directory, reason: "ferryd.lock: " + String(cString: strerror(errno)))
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      let holder = Self.processID(in: descriptor)
      close(descriptor)
      guard code == EWOULDBLOCK else {
        throw .dataDirectory(directory, reason: "ferryd.lock: " + String(cString: strerror(code)))
      }
      throw .dataInUse(directory, processID: holder)
    }
    // For messages only: the lock itself is the kernel's.
    let text = Array("\(getpid())\n".utf8)
    ftruncate(descriptor, 0)
    pwrite(descriptor, text, text.count, 0)
    self.descriptor = descriptor
  }

  deinit {
    Platform.unlock(descriptor)
    close(descriptor)
  }

  private static func processID(in descriptor: Int32) -> Int32? {
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = pread(descriptor, &bytes, bytes.count, 0)
    guard count > 0 else { return nil }
    return Int32(String(decoding: bytes.prefix(count).prefix { $0 != 0x0A }, as: UTF8.self))
  }
}
