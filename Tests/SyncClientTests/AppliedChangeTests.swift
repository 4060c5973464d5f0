import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// The origin of each write while a remote change is applied.
@Suite("Writes along with a remote change", .hangLimit)
struct AppliedChangeTests {
  /// A moment of the change, a write, and its origin.
  struct Case: Sendable, CustomTestStringConvertible {
    let effect: AppliedChange.Effect
    var isApplied = false
    /// True if the record's row is gone, and foreign keys act.
    var isGone = false
    var isTakingAlong = false
    let write: OperationKind
    var isRecord = false
    var hasLostParent = false
    let origin: AppliedChange.Origin
    var testDescription: String {
      "\(effect): \(write) \(isRecord ? "the record" : "another one"), applied \(isApplied), gone "
        + "\(isGone), along \(isTakingAlong), lost parent \(hasLostParent): \(origin)"
    }
  }

  static let cases: [Case] = [
    Case(effect: .values, write: .insert, isRecord: true, origin: .change),
    Case(effect: .values, write: .update, isRecord: true, origin: .change),
    Case(effect: .values, write: .delete, isRecord: true, origin: .change),
    Case(effect: .values, isApplied: true, write: .update, isRecord: true, origin: .author),
    Case(effect: .values, isGone: true, write: .delete, origin: .author),
    Case(effect: .values, write: .delete, hasLostParent: true, origin: .author),
    // BEFORE triggers.
    Case(effect: .delete, write: .delete, isRecord: true, origin: .change),
    Case(effect: .delete, write: .update, isRecord: true, origin: .author),
    Case(effect: .delete, write: .insert, isRecord: true, origin: .author),
    Case(effect: .delete, write: .insert, origin: .author),
    Case(effect: .delete, write: .update, origin: .author),
    Case(effect: .delete, write: .delete, origin: .author),
    Case(effect: .delete, isTakingAlong: true, write: .delete, origin: .device),
    Case(effect: .delete, isTakingAlong: true, write: .insert, origin: .device),
    // Foreign keys act, and fire triggers.
    Case(effect: .delete, isGone: true, write: .delete, origin: .device),
    Case(effect: .delete, isGone: true, write: .update, origin: .device),
    Case(effect: .delete, isGone: true, write: .insert, origin: .device),
    Case(effect: .delete, isGone: true, write: .insert, isRecord: true, origin: .device),
    // AFTER triggers.
    Case(effect: .delete, isApplied: true, isGone: true, write: .delete, origin: .author),
    Case(effect: .delete, isApplied: true, isGone: true, write: .update, origin: .author),
    Case(effect: .delete, isApplied: true, isGone: true, write: .insert, origin: .author),
    Case(
      effect: .delete, isApplied: true, isGone: true, write: .delete, isRecord: true,
      origin: .author),
    // A trigger deletes a row of an untracked table, and a foreign key acts.
    Case(effect: .delete, write: .delete, hasLostParent: true, origin: .device),
    Case(effect: .delete, isApplied: true, write: .delete, hasLostParent: true, origin: .device),
    Case(effect: .delete, isApplied: true, write: .update, hasLostParent: true, origin: .device),
    Case(effect: .delete, isApplied: true, write: .insert, hasLostParent: true, origin: .author),
    // The delete itself is this device's.
    Case(effect: .orphan, write: .delete, isRecord: true, origin: .change),
    Case(effect: .orphan, write: .update, origin: .device),
    Case(effect: .orphan, isApplied: true, write: .insert, origin: .device),
  ]

  @Test("the moment within the change decides, and the kind of the write", arguments: cases)
  func origin(_ test: Case) {
    var change = AppliedChange(
      key: RecordKey(table: "t", record: "a"), effect: test.effect)
    change.isApplied = test.isApplied
    change.isTakingAlong = test.isTakingAlong
    let origin = change.origin(
      of: test.write, isRecord: test.isRecord, hasRow: { !test.isGone },
      hasLostParent: { test.hasLostParent })
    #expect(origin == test.origin)
  }

  @Test("a row that comes back by a trigger of a dependent row ends nothing")
  func comesBack() {
    var change = AppliedChange(key: RecordKey(table: "t", record: "a"), effect: .delete)
    for isGone in [true, false] {
      let origin = change.origin(
        of: .delete, isRecord: false, hasRow: { !isGone }, hasLostParent: { false })
      #expect(origin == .device)
    }
  }
}
