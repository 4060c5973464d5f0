import Testing

extension Trait where Self == TimeLimitTrait {
  /// Ends a test that hangs, after 15 minutes: a while after `Duration.hangLimit` has ended the
  /// test's waits. It is the time limit of all suites, and no result depends on it.
  package static var hangLimit: Self {
    .timeLimit(.minutes(Duration.hangLimit.components.seconds / 60 + 5))
  }
}
