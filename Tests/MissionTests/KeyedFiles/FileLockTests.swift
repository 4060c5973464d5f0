import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissions

@Suite("Locks of files")
struct FileLockTests {
  private let system = SystemFileCalls()
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory(prefix: "ferry-lock")
    path = directory.file("lock").path
  }

  @Test("a lock that is released is free, even while a forked process has its file")
  func forked() throws {
    typealias Taking = (String) throws -> FileLock?
    let ways: [(first: Taking, next: Taking)] = [
      ({ try FileLock.acquire($0, system) }, { try FileLock.acquire($0, system) }),
      ({ try FileLock.share($0, system) }, { try FileLock.acquire($0, system) }),
      (
        { try FileLock.acquire($0, byte: 7, system) }, { try FileLock.acquire($0, byte: 7, system) }
      ),
    ]
    for (number, way) in ways.enumerated() {
      let path = "\(path)-\(number)"
      let lock = try #require(try way.first(path))
      #expect(try way.next(path) == nil)
      let inherited = try InheritedFiles(of: path)
      #expect(inherited.isAny)
      lock.release()
      #expect(try way.next(path) != nil)
      withExtendedLifetime(inherited) {}
    }
  }
}
