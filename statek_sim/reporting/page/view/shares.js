// Shares of runs, in percent.

/** 62.5 %. */
export const share = (number) => `${(100 * number).toFixed(1)} %`;

/** Returns how a share is shown beside its sign: all, some or none. */
export const grade = (part, whole) => (part === whole ? "all" : part === 0 ? "none" : "some");
