#if DEBUG
  import Foundation
#endif

/// Known mistakes that a sync engine can make, planted one at a time to prove that the simulator
/// finds them. A seam for tests: in optimised builds none can be planted, and nothing of them is
/// left in the code.
package enum PlantedFault: String, Sendable, CaseIterable {
  /// The head is told before the changes up to it are committed, as numbers from a sequence
  /// generator would be: a puller's cursor passes changes that it never saw.
  case headBeforeChanges
  /// The cursor is saved in a transaction of its own, before the rows.
  case cursorApartFromRows
  /// A receipt confirms whatever is pending for the records it names, later edits included.
  case acknowledgeByRecord
  /// Rows are applied with INSERT OR REPLACE, which deletes what refers to them.
  case replaceOnApply
  /// A page is shown as it comes, before the pull list has ended.
  case pageAppliedEarly
  /// A packet after an old tail is taken for a repetition, whatever is in it.
  case noForkDetection
  /// Of two writes of one moment, the one that comes later stays.
  case tiesUnresolved
  /// The first packet of a large transaction is applied without waiting for the rest.
  case transactionTornOnServer
  /// A packet is applied although the one that it depends on is missing.
  case dependencyIgnored
  /// A delete is forgotten when the record is inserted anew, be it by an older insert.
  case tombstoneForgotten
  /// A write that lost does not make its author pull what stands instead.
  case loserNotTold
  /// A pulled value overwrites what the user wrote and the server has not seen.
  case pendingNotShielded
  /// The cursor passes over others' changes when the device's own packets are confirmed.
  case cursorOverOthers
  /// A value that loses against a concurrent one is not recorded.
  case conflictNotRecorded
  /// What was packed is packed anew with later edits when it is sent again.
  case packetNotFrozen
  /// Remote changes that are applied are recorded as the user's own.
  case appliedChangesRecorded
  /// A cursor of a history that is gone is served from the one that there is.
  case anchorNotChecked
  /// What the server has confirmed is not kept, so that a server which is set back does not get it
  /// again.
  case archiveForgotten
  /// A device that was away for longer than history is kept goes on from where it was.
  case expiredCursorServed
  /// What is added to a counter is sent as if it were the counter's new value.
  case incrementSentAsValue
  /// A row whose unique values another row still has is left as it is, also if that row waits for
  /// the same.
  case valuesNotMoved
  /// A table that was created again, or has a column of another name, counts as recorded.
  case migrationNotNoticed
  /// Rows do not follow a value that a pull changes.
  case valuesNotFollowed
  /// A mission is put in use before its content is there.
  case missionInUseEarly
  /// A chunk is taken for right whatever came.
  case chunkUnchecked
  /// A mission is put in use before its content is on the disk.
  case contentNotSynced
  /// With a version goes all of its content, also what other missions have.
  case sharedContentRemoved
  /// A time is clamped by the server's wall clock alone, below what its author has seen.
  case clampedBelowSeen
  /// A batch that is applied once more gives its effects the identifiers that they had before.
  case effectsNamedAlike
}

extension PlantedFault {
  #if DEBUG
    private static let key: pthread_key_t = {
      var key = pthread_key_t()
      pthread_key_create(&key, nil)
      return key
    }()

    /// Whether the code that asks is to make this mistake: on the thread that planted it.
    package var isPlanted: Bool {
      guard let value = pthread_getspecific(Self.key) else { return false }
      return Self.allCases[Int(bitPattern: value) - 1] == self
    }

    /// Runs `body` with the mistake planted on this thread.
    package func planted<T>(_ body: () throws -> T) rethrows -> T {
      let number = (Self.allCases.firstIndex(of: self) ?? 0) + 1
      pthread_setspecific(Self.key, UnsafeRawPointer(bitPattern: number))
      defer { pthread_setspecific(Self.key, nil) }
      return try body()
    }
  #else
    /// Never, in an optimised build.
    @inline(__always) package var isPlanted: Bool { false }
  #endif
}
