/// A statement to run with these parameters, among others of one round trip. `read` gets each row.
package enum PlainStep {
  case one(PlainStatement, [PlainValue], read: ((any PlainRow) throws -> Void)? = nil)
  /// `read` gets the place of the key, too.
  case many(
    PlainBatch, [PlainValue], of: [[PlainValue]],
    read: ((_ place: Int, any PlainRow) throws -> Void)? = nil)
}
