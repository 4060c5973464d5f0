import FerryProtocol

/// A version and the open file.
struct OpenedVersion: ~Copyable {
  let row: FileRow
  let file: RandomAccessFile

  /// Returns the file alone.
  consuming func release() -> RandomAccessFile { file }
}

extension FileIndex {
  /// Opens the version in use; `nil` if there is none, or if another program removed the file.
  func opened(_ name: ContentHash) throws -> OpenedVersion? {
    while let row = try row(name) {
      let file = try folders.open(row.version)
      // Another process may have put a later version in this place since the row was read.
      guard try self.row(name)?.version.id == row.version.id else { continue }
      guard let file else { return nil }
      return OpenedVersion(row: row, file: file)
    }
    return nil
  }
}
