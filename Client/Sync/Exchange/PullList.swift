import FerryProtocol

/// The pages of one pull list, as they arrive. Each must move the list on, even if the server is
/// broken or hostile (SPEC.md §5, §22). ``ListBound`` counts them.
struct PullList: Equatable {
  private let epoch: Epoch?
  private var reached: SequenceNumber

  /// - Parameter cursor: the cursor of the first request; `nil` for a list from the start.
  init(from cursor: Cursor?) {
    epoch = cursor?.epoch
    reached = cursor?.received ?? -1
  }

  /// Adds the next page. Returns the reason why it cannot be a page of this list; `nil` if it can.
  mutating func add(_ head: PageHead) -> String? {
    let cursor = head.cursor
    if let epoch = [epoch, cursor.epoch].compactMap(\.self).first(where: { $0 != head.epoch }) {
      return "a page of epoch \(head.epoch) in a list of epoch \(epoch)"
    }
    guard head.more else {
      // A head below the first cursor belongs to a rolled-back server.
      guard cursor.applied == head.head, cursor.received == head.head else {
        return "a list of changes that ends at \(cursor.applied) instead of its head, \(head.head)"
      }
      return nil
    }
    guard cursor.received > reached, cursor.received <= head.head else {
      return "a list of changes without progress: it reached change \(max(0, reached)) of "
        + "\(head.head), and the next page ends at \(cursor.received)"
    }
    reached = cursor.received
    return nil
  }
}
