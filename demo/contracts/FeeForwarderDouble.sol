// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import "./DemoPair.sol";

/// A test double of LI.FI's FeeForwarder.
contract FeeForwarderDouble {
    struct FeeDistribution {
        address recipient;
        uint256 amount;
    }

    function forwardERC20Fees(address token, FeeDistribution[] calldata fees) external {
        for (uint256 i = 0; i < fees.length; i++) {
            AnyToken.pull(token, msg.sender, fees[i].recipient, fees[i].amount);
        }
    }

    function forwardNativeFees(FeeDistribution[] calldata fees) external payable {
        uint256 left = msg.value;
        for (uint256 i = 0; i < fees.length; i++) {
            left -= fees[i].amount;
            (bool isPaid,) = fees[i].recipient.call{value: fees[i].amount}("");
            require(isPaid, "a fee was not taken");
        }
        (bool ok,) = msg.sender.call{value: left}("");
        require(ok, "the rest was not taken");
    }
}
