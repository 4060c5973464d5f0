import FerryProtocol
import Foundation

/// The first look at published files: it hashes each, and stores a large one in the same pass if
/// the content is new.
///
/// ```swift
/// let intake = BlobIntake(into: directory, under: try directory.acquire(), knownSizes: [1 << 30])
/// let source = try intake.read(path, chunkSize: 4 << 20)
/// try directory.store(files: [source])  // copies files without present content
/// ```
package struct BlobIntake: Sendable {
  /// The least size, in bytes, of a file to store at once. A second pass over a smaller one costs
  /// little.
  static let keptBytes: Int64 = 8 << 20

  private let place: (directory: BlobDirectory, hold: BlobHold)?
  private let knownSizes: Set<Int64>

  /// Creates an intake for hashing only.
  package init() { (place, knownSizes) = (nil, []) }

  /// - Parameters:
  ///   - hold: Prevents the collection of the content, as long as the intake or one of its sources
  ///     lives.
  ///   - knownSizes: Sizes of probably present content. A file of another size is new.
  package init(into directory: BlobDirectory, under hold: BlobHold, knownSizes: Set<Int64> = []) {
    (place, self.knownSizes) = ((directory, hold), knownSizes)
  }

  /// Reads a regular file; see ``FileHasher/digest(of:chunkSize:goesOn:)``. The path is absolute
  /// and has no symbolic links, like the result of ``FolderListing/file(_:in:)``.
  package func read(
    _ path: String, chunkSize: Int64?, goesOn: (Int) -> Bool = { _ in true }
  ) throws(BlobError) -> BlobSource {
    if let place, let size = try BlobDirectory.size(ofFile: path), size >= Self.keptBytes,
      !knownSizes.contains(size)
    {
      do {
        let digest = try place.directory.store(new: path, chunkSize: chunkSize, goesOn: goesOn)
        return BlobSource(path: path, digest: digest, hold: place.hold)
      } catch .diskFull {
        // The content may be there already. Otherwise keeping it fails again.
      }
    }
    let digest = try FileHasher.digest(
      of: try BlobFile(linkless: path), chunkSize: chunkSize, goesOn: goesOn)
    return BlobSource(path: path, digest: digest)
  }
}
