/// Names a timer.
package struct TimerNumber: Hashable, Sendable {
  fileprivate let value: Int
}

/// Timers by their moment; those of one moment in the order in which they were set.
struct TimerQueue {
  struct Entry {
    let at: Int64
    let number: Int
    let action: () -> Void
  }

  /// A binary heap, the earliest first.
  private var heap: [Entry] = []
  private var cancelled = Set<Int>()
  private var count = 0

  mutating func add(at moment: Int64, _ action: @escaping () -> Void) -> TimerNumber {
    count += 1
    heap.append(Entry(at: moment, number: count, action: action))
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard isEarlier(child, parent) else { break }
      heap.swapAt(child, parent)
      child = parent
    }
    return TimerNumber(value: count)
  }

  mutating func cancel(_ timer: TimerNumber) { cancelled.insert(timer.value) }

  /// Removes and returns the earliest.
  mutating func next() -> Entry? {
    while let entry = pop() {
      if cancelled.isEmpty || cancelled.remove(entry.number) == nil { return entry }
    }
    cancelled = []
    return nil
  }

  private mutating func pop() -> Entry? {
    guard !heap.isEmpty else { return nil }
    heap.swapAt(0, heap.count - 1)
    let first = heap.removeLast()
    var parent = 0
    while true {
      var smallest = parent
      for child in (2 * parent + 1)..<(2 * parent + 3)
      where child < heap.count && isEarlier(child, smallest) { smallest = child }
      if smallest == parent { return first }
      heap.swapAt(parent, smallest)
      parent = smallest
    }
  }

  private func isEarlier(_ one: Int, _ other: Int) -> Bool {
    (heap[one].at, heap[one].number) < (heap[other].at, heap[other].number)
  }
}
