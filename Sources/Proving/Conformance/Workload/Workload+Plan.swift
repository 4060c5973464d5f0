/// The actions of a run's users: the application on the devices of the simulator and the chaos
/// runs.
package enum Workload {
  /// The frequency of each action, in thousandths. Notes are edited most, and there are few of
  /// them: devices really contend.
  private static let weights: [(action: UserAction, weight: Int)] = [
    (.editNote, 380), (.addNote, 100), (.deleteNote, 60), (.reviveNote, 60), (.editMany, 80),
    (.addList, 35), (.addItem, 85), (.tickItem, 75), (.deleteList, 20), (.post, 35),
    (.postLarge, 5), (.beat, 65),
  ]

  /// The frequency of actions that need the space's schema, of a thousand actions.
  package struct Mix: Sendable, Equatable {
    /// ``UserAction/tally``.
    package var counters = 80
    /// ``UserAction/batch``.
    package var batches = 25
    /// ``UserAction/claim``.
    package var claims = 25
    /// ``UserAction/draft``.
    package var drafts = 30
    /// ``UserAction/arrange``.
    package var moves = 60
    /// ``UserAction/grow``.
    package var growth = 40
    /// ``UserAction/label``.
    package var labels = 40
    /// ``UserAction/paint``.
    package var paints = 20
    /// ``UserAction/sheet``.
    package var sheets = 60
    /// ``UserAction/enrol``.
    package var members = 60
    /// ``UserAction/addList``, ``UserAction/addItem`` and ``UserAction/deleteList``, each so often
    /// beside the usual ones.
    package var cascades = 0
    /// ``UserAction/share``.
    package var shares = 0
    /// ``UserAction/shelve``.
    package var shelves = 50
    /// ``UserAction/stray``.
    package var strays = 0
    /// ``UserAction/stack``.
    package var stacks = 0
    /// ``UserAction/answer``.
    package var answers = 0
    /// ``UserAction/branch``.
    package var branches = 0
    /// ``UserAction/odd``.
    package var odd = 0
    /// ``UserAction/order``.
    package var orders = 0

    package init() {}

    fileprivate func special(_ random: inout SeededRandom) -> UserAction? {
      var rest = random.below(1_000)
      for (action, ratio) in [
        (UserAction.tally, counters), (.batch, batches), (.claim, claims), (.draft, drafts),
        (.arrange, moves), (.grow, growth), (.label, labels), (.paint, paints),
        (.sheet, sheets), (.addList, cascades), (.addItem, cascades), (.deleteList, cascades),
        (.enrol, members), (.share, shares), (.shelve, shelves),
        (.stray, strays), (.answer, answers), (.branch, branches), (.odd, odd), (.stack, stacks),
        (.order, orders),
      ] {
        rest -= ratio
        if rest < 0 { return action }
      }
      return nil
    }
  }

  /// Draws the actions of all devices, by time, then ordinal.
  ///
  /// - Parameters:
  ///   - devices: The number of devices, 1 at least.
  ///   - duration: Milliseconds over which the actions are spread.
  package static func plan(
    seed: UInt64, devices: Int, operations: Int, duration: Int64, mix: Mix = Mix()
  ) -> [PlannedAction] {
    var random = SeededRandom(seed, "plan")
    // A separate generator, so the ratios change nothing else.
    var special = SeededRandom(seed, "mix")
    var actions = (0..<operations).map { index in
      var planned = PlannedAction(
        ordinal: index, at: Int64(random.below(Int(clamping: duration))),
        device: random.below(devices), action: action(&random), seed: random.next())
      if let action = mix.special(&special) { planned.action = action }
      return planned
    }
    actions.sort { ($0.at, $0.ordinal) < ($1.at, $1.ordinal) }
    for index in actions.indices { actions[index].ordinal = index }
    return actions
  }

  private static func action(_ random: inout SeededRandom) -> UserAction {
    var rest = random.below(weights.reduce(0) { $0 + $1.weight })
    for (action, weight) in weights {
      rest -= weight
      if rest < 0 { return action }
    }
    return .editNote
  }
}
