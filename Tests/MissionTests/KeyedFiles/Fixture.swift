import FerryMissions
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

let storeKey = [UInt8](repeating: 3, count: 32)
let otherKey = [UInt8](repeating: 4, count: 32)

/// Returns an URL for each number.
func url(_ number: Int) -> String { "https://example.org/files/\(number)?v=1" }

/// Returns the error of a call, which has to fail with one.
func failure(
  _ body: () async throws -> Void, at location: SourceLocation = #_sourceLocation
) async -> FileStoreError.Kind? {
  let error = await #expect(throws: FileStoreError.self, sourceLocation: location) {
    try await body()
  }
  return error?.kind
}

extension FileStore {
  /// The names in the folder of new files.
  var drafts: [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: folder + "/new")) ?? []
  }

  /// The number of files below `files`.
  var filesOnDisk: Int {
    let paths = try? FileManager.default.subpathsOfDirectory(atPath: folder + "/files")
    return (paths ?? []).count { $0.utf8.count > 3 }
  }
}

/// Changes bytes of a file, which may be read-only.
func change(_ path: String, _ body: (inout [UInt8]) -> Void) throws {
  var bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
  body(&bytes)
  try FileManager.default.removeItem(atPath: path)
  try Data(bytes).write(to: URL(filePath: path))
}
