import FerryProtocol

/// The state of a replica's sync with the space.
struct SyncState: Sendable, Equatable {
  var epoch: Epoch?
  /// The cursor: everything up to here is applied.
  var applied: SequenceNumber
  /// Past ``applied`` while pages are staged.
  var received: SequenceNumber
  /// The newest place reported by the server.
  var head: SequenceNumber
  /// The server's clock minus this device's, in milliseconds.
  var clockOffset: Int64
  var lastSync: Int64?
  var anchor: Cursor.Anchor?
  /// The current pull from the start to replace the rows here, if there is one.
  var replacement: Replacement?
  /// The head at the beginning of the newest list from the start with several pages.
  var began: SequenceNumber?

  /// The cursor for the next request; `nil` before the first pull.
  var cursor: Cursor? {
    epoch.map { epoch in
      Cursor(
        epoch: epoch, applied: applied, received: received, anchor: anchor,
        began: applied == 0 && received > 0 ? began : nil)
    }
  }

  /// Moves the cursor back. A list from the start replaces the rows here, because it lacks old
  /// deletes.
  mutating func goBack(to place: SequenceNumber) {
    (applied, received) = (place, place)
    if place == 0 && replacement == nil { replacement = .removing }
  }
}
