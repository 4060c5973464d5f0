import FerryCryptography
import FerryHTTPServer
import FerryMissionServer
import FerryProtocol

/// Content on the way from a store elsewhere to a client. A slow client slows the store down.
struct ContentRelay: Sendable {
  /// The most bytes in the queue for the client.
  static let capacity = 1 << 20
  /// Bytes of one relay: those in the queue for the client, and those from the store.
  static let memory = 2 * capacity
  /// Bytes handed over at once.
  private static let pieceBytes = 128 << 10

  let blobs: any ContentStore
  let blob: MissionBlob
  let stream: HTTPStream

  /// Opens a range of the content.
  func open(_ range: Range<Int>) async throws(BlobError) -> ContentReader {
    try await blobs.read(
      blob.hash, Int64(range.lowerBound)..<Int64(range.upperBound), of: blob.size)
  }

  /// Sends the parts, and ends the stream. Returns early if the client is gone.
  ///
  /// - Parameter first: The reader of the first range, which is open already.
  func send(_ parts: [ContentPart], _ first: ContentReader?) async throws(BlobError) {
    var first = first
    for part in parts {
      switch part {
      case .bytes(let bytes):
        guard await stream.hasRoom() else { return }
        stream.send(bytes)
      case .range(let range):
        let reader = if let first { first } else { try await open(range) }
        first = nil
        guard try await send(range, reader) else { return }
      }
    }
    stream.finish()
  }

  /// Sends a range. Returns whether the client is still there. The end of damaged content is never
  /// sent if the whole is.
  private func send(
    _ range: Range<Int>, _ reader: ContentReader
  ) async throws(BlobError) -> Bool {
    let isWhole = range.count == blob.size
    var hash = SHA256()
    var rest = range.count
    while rest > 0 {
      guard await stream.hasRoom() else { return false }
      guard let bytes = try await reader.next(), bytes.count <= rest else {
        throw .missing(place: blobs.place)
      }
      rest -= bytes.count
      if isWhole {
        hash.update(bytes)
        if rest == 0 {
          let found = ContentHash(digest: hash.finish())
          guard found == blob.hash else { throw .mismatch(expected: blob.hash, found: found) }
          hash = SHA256()
        }
      }
      var piece = bytes[...]
      while !piece.isEmpty {
        guard await stream.hasRoom() else { return false }
        stream.send(Array(piece.prefix(Self.pieceBytes)))
        piece = piece.dropFirst(Self.pieceBytes)
      }
    }
    return true
  }
}
