/// Records without a parent because others are left out of a pull list: a pure machine, linear in
/// the references.
///
/// ```swift
/// var records = DependentRecords(references: [("b", "a"), ("c", "b")])
/// records.lacking(["a"])  // ["b": "a", "c": "b"]
/// ```
struct DependentRecords<Node: Hashable & Comparable & Sendable>: Sendable {
  private var children: [Node: [Node]] = [:]
  /// The number of followed references.
  private(set) var visits = 0

  /// - Parameter references: references to records without a row before the list. Rows with
  ///   references to other records have their parents in any case.
  init(references: some Sequence<(child: Node, parent: Node)>) {
    for (child, parent) in references where child != parent {
      children[parent, default: []].append(child)
    }
  }

  /// Returns the records that refer to one of those left out, over any number of steps, each with
  /// the record it refers to.
  mutating func lacking(_ leftOut: some Sequence<Node>) -> [Node: Node] {
    var seen = Set(leftOut)
    // In order, so each run names the same parent.
    var (waiting, lacking) = (seen.sorted(), [Node: Node]())
    while let parent = waiting.popLast() {
      for child in children[parent] ?? [] {
        visits += 1
        guard seen.insert(child).inserted else { continue }
        lacking[child] = parent
        waiting.append(child)
      }
    }
    return lacking
  }

  /// Returns the references among these records and the ones they lead to.
  mutating func references(from roots: some Sequence<Node>) -> [(child: Node, parent: Node)] {
    let roots = Set(roots)
    let reached = roots.union(lacking(roots).keys)
    return reached.sorted().flatMap { parent in (children[parent] ?? []).map { ($0, parent) } }
  }
}
