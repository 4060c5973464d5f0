/// A queue with flows in turns, and with the work of a flow in the order of arrival; pure.
///
/// A path names the flow of a piece of work from the outside in: the user, then the space. At each
/// level the names take turns. So one user with a thousand pieces of work and one user with a
/// single piece get the same share. All paths of a queue have the same length.
///
/// ```swift
/// var queue = FairQueue<String>()
/// for work in ["a1", "a2"] { queue.add(work, to: ["ada", "notes"]) }
/// queue.add("e1", to: ["eve", "notes"])
/// queue.removeNext()  // a1
/// queue.removeNext()  // e1
/// ```
package struct FairQueue<Element> {
  private var root = Node<Element>()

  package init() {}

  /// Elements in the queue.
  package var count: Int { root.count }

  package var isEmpty: Bool { root.count == 0 }

  /// Elements in the queue of one outermost name.
  package func count(of name: String) -> Int { root.children[name]?.count ?? 0 }

  package mutating func add(_ element: Element, to path: [String]) { root.add(element, path[...]) }

  /// Returns the next result of ``removeNext(where:)``.
  package func next(where mayGo: (String) -> Bool = { _ in true }) -> Element? {
    root.next(where: mayGo)
  }

  /// Removes and returns the next element. The turns of names that may not go are skipped, and come
  /// first later.
  ///
  /// - Parameter mayGo: Whether an outermost name may go.
  package mutating func removeNext(where mayGo: (String) -> Bool = { _ in true }) -> Element? {
    root.removeNext(where: mayGo)
  }

  /// Removes and returns the newest element of the flow with most elements, level by level. This is
  /// the user with most elements, then the space of this user with most. So a full queue has room
  /// for users with little work.
  package mutating func removeHeaviest() -> Element? { root.removeHeaviest() }

  /// Removes and returns elements at the heads of flows, as long as they satisfy the condition.
  package mutating func removeHeads(while condition: (Element) -> Bool) -> [Element] {
    var removed: [Element] = []
    root.removeHeads(while: condition, into: &removed)
    return removed
  }

  /// The oldest element of each flow.
  package var heads: [Element] {
    var heads: [Element] = []
    root.addHeads(to: &heads)
    return heads
  }
}

/// A level of a fair queue: a flow with elements, or names that take turns.
private struct Node<Element> {
  var count = 0
  var children: [String: Node] = [:]
  private var elements = Line<Element>()
  /// The names with elements, in the order of their turns.
  private var turns = Line<String>()

  mutating func add(_ element: Element, _ path: ArraySlice<String>) {
    count += 1
    guard let name = path.first else { return elements.append(element) }
    if children[name] == nil { turns.append(name) }
    children[name, default: Node()].add(element, path.dropFirst())
  }

  func next(where mayGo: (String) -> Bool = { _ in true }) -> Element? {
    if let element = elements.first { return element }
    return turns.first(where: mayGo).flatMap { children[$0]?.next() }
  }

  mutating func removeNext(where mayGo: (String) -> Bool = { _ in true }) -> Element? {
    if let element = elements.removeFirst() {
      count -= 1
      return element
    }
    guard let name = turns.removeFirst(where: mayGo) else { return nil }
    let element = children[name]?.removeNext()
    if element != nil { count -= 1 }
    if children[name]?.count == 0 { children[name] = nil } else { turns.append(name) }
    return element
  }

  mutating func removeHeaviest() -> Element? {
    if let element = elements.removeLast() {
      count -= 1
      return element
    }
    var heaviest: (name: String, count: Int)?
    turns.forEach { name in
      let count = children[name]?.count ?? 0
      if count >= heaviest?.count ?? 0 { heaviest = (name, count) }
    }
    guard let name = heaviest?.name, let element = children[name]?.removeHeaviest() else {
      return nil
    }
    count -= 1
    forgetEmpty()
    return element
  }

  mutating func removeHeads(while condition: (Element) -> Bool, into removed: inout [Element]) {
    let before = removed.count
    while let element = elements.first, condition(element) {
      _ = elements.removeFirst()
      removed.append(element)
    }
    turns.forEach { name in
      children[name]?.removeHeads(while: condition, into: &removed)
    }
    count -= removed.count - before
    if removed.count > before { forgetEmpty() }
  }

  func addHeads(to heads: inout [Element]) {
    if let element = elements.first { heads.append(element) }
    turns.forEach { children[$0]?.addHeads(to: &heads) }
  }

  private mutating func forgetEmpty() {
    turns.removeAll { children[$0]?.count ?? 0 == 0 }
    children = children.filter { $0.value.count > 0 }
  }
}

/// Elements in the order of arrival. Those before `start` are gone.
struct Line<Element> {
  private var slots: [Element?] = []
  private var start = 0

  var count: Int { slots.count - start }

  var first: Element? { start < slots.count ? slots[start] : nil }

  mutating func append(_ element: Element) { slots.append(element) }

  mutating func removeFirst() -> Element? {
    guard let element = first else { return nil }
    slots[start] = nil
    start += 1
    if start > 64 && start * 2 > slots.count {
      slots.removeFirst(start)
      start = 0
    }
    return element
  }

  mutating func removeLast() -> Element? {
    start < slots.count ? slots.removeLast() : nil
  }

  func first(where condition: (Element) -> Bool) -> Element? {
    slots[start...].first { $0.map(condition) ?? false } ?? nil
  }

  mutating func removeFirst(where condition: (Element) -> Bool) -> Element? {
    if let first, condition(first) { return removeFirst() }
    guard let index = slots[start...].firstIndex(where: { $0.map(condition) ?? false }) else {
      return nil
    }
    return slots.remove(at: index)
  }

  mutating func removeAll(where condition: (Element) -> Bool) {
    slots = slots[start...].filter { !($0.map(condition) ?? true) }
    start = 0
  }

  func forEach(_ body: (Element) -> Void) {
    for case .some(let element) in slots[start...] { body(element) }
  }
}
