/// Known mistakes of sync engines. A world makes one of them, to prove that the simulator finds it.
///
/// The product knows nothing of them. Each is planted at a seam: in SQL triggers of the device's
/// file (``deviceStatements``) or of the server's (``serverStatements``), in requests and answers
/// (``PlantedEndpoint``), in a device's transport, or in the files and rows of missions.
package enum PlantedFault: String, Sendable, CaseIterable {
  /// The head is reported before the changes up to it are committed, as numbers from a sequence
  /// generator would be. So a puller's cursor passes changes that it never saw.
  case headBeforeChanges
  /// The cursor is saved in a separate transaction, before the rows.
  case cursorApartFromRows
  /// A receipt confirms everything pending for the records it names, later edits included.
  case acknowledgeByRecord
  /// Rows are applied with INSERT OR REPLACE, which forgets columns missing in a change.
  case replaceOnApply
  /// A page is shown as it comes, before the pull list has ended.
  case pageAppliedEarly
  /// A packet after an old tail counts as a repetition, with any content.
  case noForkDetection
  /// Of two writes at the same time, the later one to arrive wins.
  case tiesUnresolved
  /// The first packet of a large transaction is applied without waiting for the rest.
  case transactionTornOnServer
  /// A packet is applied although the packet before it is missing.
  case dependencyIgnored
  /// A delete is forgotten when the record is inserted again, even by an older insert.
  case tombstoneForgotten
  /// A lost write does not make the author pull the present value.
  case loserNotNotified
  /// A pulled value overwrites a user's write not seen by the server.
  case pendingNotShielded
  /// The cursor passes over others' changes when the device's own packets are confirmed.
  case cursorOverOthers
  /// A value lost against a concurrent one is not recorded.
  case conflictNotRecorded
  /// Packed operations are packed again with later edits when they are sent again.
  case packetNotFrozen
  /// Applied remote changes are recorded as the user's own.
  case appliedChangesRecorded
  /// A cursor of a lost history is served from the present one.
  case anchorNotChecked
  /// Confirmed operations are not kept, so a server restored from a backup does not get them again.
  case archiveForgotten
  /// A device away for longer than history is kept goes on from the old cursor.
  case expiredCursorServed
  /// An increment of a counter is sent as if it were the counter's new value.
  case incrementSentAsValue
  /// A row is left unchanged if another row still has the unique values, even if the other row
  /// waits for the same reason.
  case valuesNotMoved
  /// A recreated table, or one with a renamed column, counts as recorded.
  case migrationNotNoticed
  /// Rows do not follow a value changed by a pull.
  case valuesNotFollowed
  /// A mission is put in use before the content is there.
  case missionInUseEarly
  /// A chunk's bytes are written unchecked, and differ from the checked ones.
  case chunkUnchecked
  /// A mission is put in use before the content is on the disk.
  case contentNotSynced
  /// Removing a version removes all content of it, even if other missions have it too.
  case sharedContentRemoved
  /// A device forgets at the next start that a version of a bundle failed.
  case failureForgotten
  /// A late report about a bundle overwrites a later one.
  case reportsUnordered
  /// A time is clamped by the server's wall clock alone, below times seen by the author.
  case clampedBelowSeen
  /// A batch applied once more gives the effects their former identifiers.
  case effectsNamedAlike
  /// Operations kept separate by a packet are merged when they are sent again.
  case packetsMergedAgain
  /// Deletes along with parents in one pull count as one transaction of the user's, and the orphans
  /// left by their quarantine are deleted on this device alone.
  case cascadesTogether
  /// A row that goes with its parent in a pull is not listed as a conflict.
  case lostRowUnlisted
  /// A delete that goes along in a pull counts as made by a device that has seen the row.
  case lostRowSeen
  /// The row of a record deleted by another device is not kept for an answer.
  case formerRowForgotten
  /// The exchange of a first list lacks a row of each slice.
  case filledRowForgotten
  /// A new table counts as known to the space by its name here: another spelling is another table.
  case spellingNotFollowed
  /// A delete is refused if the row is larger than one operation.
  case deletesMeasured
  /// A pull deletes a parent at its place in the list, before the list has moved the parent's
  /// children.
  case parentDeletedEarly
  /// Writes to a table of another, attached replica are recorded in this one.
  case attachedRecorded
  /// A device does not compare the tail in a page with the packets confirmed by receipts.
  case tailNotCompared
}
