import { Component, type ComponentChildren, type ComponentChild } from "preact";

interface Props {
  children: ComponentChildren;
  otherwise: (error: Error) => ComponentChild;
}

/** Whatever goes wrong below is shown in its place: the page never goes blank. */
export class ErrorBoundary extends Component<Props, { error: Error | undefined }> {
  override state = { error: undefined as Error | undefined };

  override componentDidCatch(error: unknown): void {
    this.setState({ error: error instanceof Error ? error : new Error(String(error)) });
  }

  override render(): ComponentChild {
    return this.state.error ? this.props.otherwise(this.state.error) : this.props.children;
  }
}
