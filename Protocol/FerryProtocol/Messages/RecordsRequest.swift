/// A request for the whole state of single records, independent of the device's cursor (SPEC.md
/// §15).
package struct RecordsRequest: Sendable, Equatable {
  /// One at least, ``Limits/recordsPerRequest`` at most, none of them twice.
  package var keys: [RecordKey]

  package init(keys: [RecordKey]) { self.keys = keys }
}

extension RecordsRequest: JSONMessage {
  package static var blank: Self { Self(keys: []) }
  package static var strictness: MemberStrictness { .once }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    let most = json.rules.sync.recordsPerRequest
    let form = JSONForm.pair(
      .column, .record, "a record is named by table and identifier", make: RecordKey.init
    ) {
      ($0.table, $0.record)
    }
    try json.required(
      "records", &keys, as: form.list(max: most, "records"), missing: "no record is named")
    try json.check(!keys.isEmpty, "no record is named")
    var seen = Set<RecordKey>()
    let other = keys.first { !seen.insert($0).inserted }
    try json.check(other.map { "record \($0.record) of table \($0.table) is a duplicate" })
  }
}

extension Change {
  /// Returns the answer for a missing record: a delete at time 0 by device 0, at sequence 0.
  package static func absent(_ key: RecordKey) -> Change {
    let nobody = Stamp(time: .zero, device: DeviceID(UniqueID(high: 0, low: 0)))
    return Change(
      sequence: 0, key: key,
      state: RecordState(deleted: SequencedStamp(stamp: nobody, sequence: 0)))
  }
}
