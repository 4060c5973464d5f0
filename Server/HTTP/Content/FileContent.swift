/// Some consecutive bytes of an open file.
package struct FileContent: Sendable {
  package let file: ReadableFile
  /// In bytes, from the file's beginning.
  package let range: Range<Int>

  /// Creates content of everything in the file at the time of opening.
  package init(_ file: ReadableFile) {
    self.file = file
    range = 0..<file.size
  }

  /// Creates content of a range within the file.
  package init(_ file: ReadableFile, range: Range<Int>) {
    precondition(range.lowerBound >= 0 && range.upperBound <= file.size, "outside the file")
    self.file = file
    self.range = range
  }

  /// In bytes.
  package var count: Int { range.count }

  /// True if the file still reaches as far.
  var isComplete: Bool { file.sizeNow >= range.upperBound }
}
