import FerryProtocol

/// An error: a trigger or constraint of the schema rolled the transaction back for a record.
struct RecordEndedTransaction: Error {
  let key: RecordKey
  let reason: String
  /// True if the row alone is at fault.
  var isAlone = false
}
