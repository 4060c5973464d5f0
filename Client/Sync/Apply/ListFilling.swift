import FerryProtocol

/// A first list on its way into copies of its tables, one slice after another. Other calls use the file
/// between two slices.
final class ListFilling {
  let filled: FilledList
  /// The search for rows without a parent, after the last slice.
  var check: CopyCheck?
  /// Whether the copies may be exchanged.
  var isComplete = false
  /// The changes that were tried.
  private(set) var tried = 0
  private var pages: StagedPageCursor
  private var page: PageFeed?
  /// Changes that were read and belong to later slices.
  private var rest: ChangeBatch.SubSequence = []

  init(_ filled: FilledList, _ pages: StagedPageCursor) {
    (self.filled, self.pages) = (filled, pages)
  }

  /// Returns the next changes of the list, at most so many; none after the last ones.
  ///
  /// - Throws: ``CannotFill`` if a part of the list is no change of a record.
  func next(_ count: Int) throws -> [Change] {
    var slice: [Change] = []
    while slice.count < count, let change = try next() { slice.append(change) }
    tried += slice.count
    return slice
  }

  private func next() throws -> Change? {
    while true {
      if let change = rest.popFirst() {
        guard case .success(let change) = change else { throw CannotFill() }
        return change
      }
      if let batch = try page?.next() {
        rest = batch[...]
        continue
      }
      page = try pages.next()
      guard let page else { return nil }
      guard try page.open().notices.isEmpty else { throw CannotFill() }
    }
  }
}
