import FerryProtocol

/// The place of missions' content: a directory, or an object store elsewhere.
///
/// Content is visible as a whole and after a check of the hash, or not at all. The locks of this
/// machine's processes and the signing key are in a directory in both cases.
package protocol ContentStore: Sendable {
  /// The directory of this machine.
  var local: BlobThreads { get }
  /// True if the locks of ``local`` count on all nodes with the content.
  var locksAllNodes: Bool { get }
  /// The name in messages, without secrets.
  var place: String { get }

  /// Returns the path of content in a file of this machine; `nil` if content is elsewhere.
  func file(of hash: ContentHash) -> String?

  /// Returns an address at which a client may fetch content itself, without further credentials;
  /// `nil` if the server sends it.
  func address(of hash: ContentHash) -> String?

  /// Returns the bytes of each present content.
  func sizes(of hashes: [ContentHash]) async throws(BlobError) -> [ContentHash: Int64]

  /// Reads content of no more than `limit` bytes into memory; `nil` if it is not here.
  func content(of hash: ContentHash, limit: Int) async throws(BlobError) -> [UInt8]?

  /// Opens a range of content with `size` bytes. Throws ``BlobError/missing(place:)`` if the
  /// content is not here with this size.
  func read(
    _ hash: ContentHash, _ range: Range<Int64>, of size: Int64
  ) async throws(BlobError) -> ContentReader

  /// Returns `true` if content still matches the hash; `nil` if it is not here.
  ///
  /// - Parameter read: Called with the bytes read since the last call.
  func isIntact(
    _ hash: ContentHash, read: @escaping @Sendable (Int) -> Void
  ) async throws(BlobError) -> Bool?

  /// Appends the next part of an upload; see ``BlobDirectory/append(_:at:to:)``. When it returns
  /// the size of the whole, the content is here.
  func append(
    _ bytes: [UInt8], at offset: Int64, to upload: BlobDirectory.Upload
  ) async throws(BlobError) -> Int64

  /// Returns the present bytes of an upload; 0 if none was begun.
  func offset(owner: String, _ hash: ContentHash) async throws(BlobError) -> Int64

  /// Stores content from memory, and returns the hash.
  func store(_ bytes: [UInt8]) async throws(BlobError) -> ContentHash

  /// Stores copies of files with known digests; see ``BlobDirectory/store(files:goesOn:)``.
  ///
  /// - Parameter kept: Called with the bytes stored since the last call.
  func store(
    files: [BlobSource], kept: @escaping @Sendable (Int) -> Void
  ) async throws(BlobError)

  // MARK: Collecting

  /// Returns some of the content from `moment` or before (seconds since 1970).
  ///
  /// - Parameter place: ``ContentPage/next`` of the page before; `nil` for the first.
  func page(from place: String?, before moment: Int64) async throws(BlobError) -> ContentPage

  /// Removes content, and returns the sizes of present ones.
  func remove(_ hashes: [ContentHash]) async throws(BlobError) -> [Int64]

  /// Removes unfinished drafts and uploads; see ``BlobDirectory/removeUnfinished(before:)``.
  func removeUnfinished(before moment: Int64) async throws(BlobError) -> UnfinishedRemoval
}

extension ContentStore {
  /// Returns the bytes of the content; `nil` if it is not here.
  package func size(of hash: ContentHash) async throws(BlobError) -> Int64? {
    try await sizes(of: [hash])[hash]
  }
}

/// Some of the content of a store.
package struct ContentPage: Sendable, Equatable {
  package var hashes: [ContentHash]
  /// The place of the next page; `nil` after the last.
  package var next: String?

  package init(_ hashes: [ContentHash], next: String?) {
    (self.hashes, self.next) = (hashes, next)
  }
}

/// Content for one reader, part by part.
package struct ContentReader: Sendable {
  /// Returns the next part, or `nil` after the last.
  package let next: @Sendable () async throws(BlobError) -> [UInt8]?

  package init(next: @escaping @Sendable () async throws(BlobError) -> [UInt8]?) {
    self.next = next
  }
}
