/// The work of a pool of threads, in turns of the users; pure.
///
/// The server's own work goes first, since all users wait for it: commits, for example. Then the
/// users take turns, and the parts of a user's work (``FairQueue``). Work that comes while no user's
/// work waits is next, in any case.
package struct FlowTurns<Work> {
  private var own = Line<Work>()
  /// A fast way for an idle server: work that came while no user's work was here.
  private var first: Work?
  private var users = FairQueue<Work>()

  package init() {}

  /// Pieces of waiting work.
  package var count: Int { own.count + (first == nil ? 0 : 1) + users.count }

  package mutating func add(_ work: Work, of flow: WorkFlow) {
    if flow.user.isEmpty {
      own.append(work)
    } else if first == nil, users.isEmpty {
      first = work
    } else {
      users.add(work, to: flow.path)
    }
  }

  /// Removes and returns the next work; `nil` if nothing waits.
  package mutating func removeNext() -> Work? {
    own.removeFirst() ?? first.take() ?? users.removeNext()
  }
}
