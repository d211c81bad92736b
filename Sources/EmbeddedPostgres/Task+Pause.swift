extension Task<Never, Never> {
  /// Sleeps, even if the task is cancelled.
  static func pause(_ duration: Duration) async {
    await Task<Void, Never>.detached { try? await Task.sleep(for: duration) }.value
  }
}
